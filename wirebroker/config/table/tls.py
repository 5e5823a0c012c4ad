"""TLS: keys, certificates, whom to trust, versions."""

from __future__ import annotations

from typing import Final

from wirebroker.config.rows.forms import PER_BROKER, boolean, items, kept, password, text
from wirebroker.config.rows.row import Effect, OfListener

_ONLY: Final = OfListener.ONLY
_STORES: Final = (
    "PEM, PKCS12 (`pip install 'wirebroker[tls]'`) or JKS, whose file may also be PKCS12 (the old "
    "format needs `pip install 'wirebroker[jks]'`)"
)

ROWS: Final = (
    text(
        "ssl.keystore.type",
        "JKS",
        f"Form of the key and its certificates: {_STORES}.",
        mutability=PER_BROKER,
        of_listener=_ONLY,
    ),
    text(
        "ssl.keystore.location",
        None,
        "File with the key and the certificates of listeners with TLS, and of our own connections "
        "where others ask for a certificate. It is read again whenever AlterConfigs names it.",
        mutability=PER_BROKER,
        of_listener=_ONLY,
    ),
    password(
        "ssl.keystore.password",
        None,
        "Password of that file.",
        mutability=PER_BROKER,
        of_listener=_ONLY,
    ),
    password(
        "ssl.key.password",
        None,
        "Password of the key, if it has one of its own.",
        mutability=PER_BROKER,
        of_listener=_ONLY,
    ),
    password(
        "ssl.keystore.certificate.chain",
        None,
        "Certificates as PEM, in place of a file.",
        mutability=PER_BROKER,
        of_listener=_ONLY,
    ),
    password(
        "ssl.keystore.key",
        None,
        "Key as PEM, in place of a file.",
        mutability=PER_BROKER,
        of_listener=_ONLY,
    ),
    text(
        "ssl.truststore.type",
        "JKS",
        f"Form of the certificates that are believed: {_STORES}.",
        mutability=PER_BROKER,
        of_listener=_ONLY,
    ),
    text(
        "ssl.truststore.location",
        None,
        "File with the certificates that are believed; the system's, if there is none.",
        mutability=PER_BROKER,
        of_listener=_ONLY,
    ),
    password(
        "ssl.truststore.password",
        None,
        "Password of that file.",
        mutability=PER_BROKER,
        of_listener=_ONLY,
    ),
    password(
        "ssl.truststore.certificates",
        None,
        "Certificates that are believed as PEM, in place of a file.",
        mutability=PER_BROKER,
        of_listener=_ONLY,
    ),
    text(
        "ssl.client.auth",
        "none",
        "Whether clients show a certificate, by which they are known. With SASL_SSL only a "
        "listener's own value counts.",
        choices=("required", "requested", "none"),
        mutability=PER_BROKER,
    ),
    items(
        "ssl.enabled.protocols",
        "TLSv1.2,TLSv1.3",
        "Versions of TLS.",
        choices=("TLSv1.2", "TLSv1.3"),
        mutability=PER_BROKER,
    ),
    items(
        "ssl.cipher.suites",
        "",
        "Cipher suites of TLS 1.2, as Java names them; those of TLS 1.3 all together or none. "
        "Empty leaves the choice to OpenSSL.",
        mutability=PER_BROKER,
    ),
    text(
        "ssl.endpoint.identification.algorithm",
        "https",
        "Whether the certificates of servers that we connect to have to name them: https, or "
        "empty for no.",
        mutability=PER_BROKER,
    ),
    text(
        "ssl.principal.mapping.rules",
        "DEFAULT",
        "How the name in a client's certificate becomes a user's: "
        "RULE:pattern/replacement/[LU], ..., DEFAULT.",
    ),
    boolean(
        "ssl.allow.dn.changes",
        False,
        "Whether a certificate that replaces ours while the broker runs may name another owner.",
    ),
    boolean(
        "ssl.allow.san.changes",
        False,
        "Whether it may name other hosts than the one before.",
    ),
    *(
        text(
            name,
            default,
            "Java's; what is used is Python's ssl.",
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
