"""Configs of TLS: keys, certificates, truststores, versions."""

from __future__ import annotations

from typing import Final

from wirebroker.config.rows.forms import PER_BROKER, boolean, items, kept, password, text
from wirebroker.config.rows.row import Effect, OfListener

_ONLY: Final = OfListener.ONLY
_STORES: Final = (
    "PEM, PKCS12 (needs `pip install 'wirebroker[tls]'`) or JKS, which accepts PKCS12 files too "
    "(Java's old format needs `pip install 'wirebroker[jks]'`)"
)

ROWS: Final = (
    text(
        "ssl.keystore.type",
        "JKS",
        f"Format of the keystore: {_STORES}.",
        mutability=PER_BROKER,
        of_listener=_ONLY,
    ),
    text(
        "ssl.keystore.location",
        None,
        "File with the key and certificates of TLS listeners, and of outgoing connections to "
        "servers that request a certificate. It is read again whenever AlterConfigs sets it.",
        mutability=PER_BROKER,
        of_listener=_ONLY,
    ),
    password(
        "ssl.keystore.password",
        None,
        "Password of the keystore file.",
        mutability=PER_BROKER,
        of_listener=_ONLY,
    ),
    password(
        "ssl.key.password",
        None,
        "Password of the key, if it has its own.",
        mutability=PER_BROKER,
        of_listener=_ONLY,
    ),
    password(
        "ssl.keystore.certificate.chain",
        None,
        "Certificates as PEM, instead of a keystore file.",
        mutability=PER_BROKER,
        of_listener=_ONLY,
    ),
    password(
        "ssl.keystore.key",
        None,
        "Key as PEM, instead of a keystore file.",
        mutability=PER_BROKER,
        of_listener=_ONLY,
    ),
    text(
        "ssl.truststore.type",
        "JKS",
        f"Format of the truststore: {_STORES}.",
        mutability=PER_BROKER,
        of_listener=_ONLY,
    ),
    text(
        "ssl.truststore.location",
        None,
        "File with the trusted certificates; without one, the system's CAs are trusted.",
        mutability=PER_BROKER,
        of_listener=_ONLY,
    ),
    password(
        "ssl.truststore.password",
        None,
        "Password of the truststore file.",
        mutability=PER_BROKER,
        of_listener=_ONLY,
    ),
    password(
        "ssl.truststore.certificates",
        None,
        "Trusted certificates as PEM, instead of a truststore file.",
        mutability=PER_BROKER,
        of_listener=_ONLY,
    ),
    text(
        "ssl.client.auth",
        "none",
        "Whether clients present a certificate, which identifies them. With SASL_SSL only a "
        "listener's own value applies.",
        choices=("required", "requested", "none"),
        mutability=PER_BROKER,
    ),
    items(
        "ssl.enabled.protocols",
        "TLSv1.2,TLSv1.3",
        "Enabled versions of TLS.",
        choices=("TLSv1.2", "TLSv1.3"),
        mutability=PER_BROKER,
    ),
    items(
        "ssl.cipher.suites",
        "",
        "Cipher suites of TLS 1.2, by their Java names; those of TLS 1.3 only all together or "
        "not at all. If empty, OpenSSL chooses.",
        mutability=PER_BROKER,
    ),
    text(
        "ssl.endpoint.identification.algorithm",
        "https",
        "Whether outgoing connections verify that the server's certificate contains its host "
        "name: https, or empty to disable this.",
        mutability=PER_BROKER,
    ),
    text(
        "ssl.principal.mapping.rules",
        "DEFAULT",
        "How the subject of a client's certificate is mapped to a user: "
        "RULE:pattern/replacement/[LU], ..., DEFAULT.",
    ),
    boolean(
        "ssl.allow.dn.changes",
        False,
        "Whether a certificate that replaces another at run time may have a different subject.",
    ),
    boolean(
        "ssl.allow.san.changes",
        False,
        "Whether a certificate that replaces another at run time may lack host names of the "
        "previous one.",
    ),
    *(
        text(
            name,
            default,
            "Setting of Java's TLS; wirebroker uses Python's ssl module.",
            mutability=PER_BROKER,
            effect=Effect.SHOWN,
        )
        for name, default in (
            ("ssl.keymanager.algorithm", "SunX509"),
            ("ssl.protocol", "TLSv1.3"),
            ("ssl.provider", None),
            ("ssl.secure.random.implementation", None),
            ("ssl.trustmanager.algorithm", "PKIX"),
        )
    ),
    *kept(
        "no Java classes are loaded.",
        """
        ssl.engine.factory.class class - - per-broker class
        """,
    ),
)
