"""Settings of TLS listeners, valid and refused."""

from __future__ import annotations

import pytest

from wirebroker.config import Config, ConfigError
from wirebroker.config.listeners.listeners import listeners_of
from wirebroker.config.security.cipher_suites import suites_for_openssl
from wirebroker.config.security.client_tls import client_tls
from wirebroker.config.security.principal_rules import principal_name, principal_rules
from wirebroker.config.security.tls import VERSIONS, outgoing_tls_settings

BOTH = {"listeners": "SSL://:1,SASL_SSL://:2", "sasl.enabled.mechanisms": "SCRAM-SHA-256"}
FILE = {"ssl.keystore.location": "/broker.pem", "ssl.keystore.type": "pem"}


def test_listener_values_override_broker_values() -> None:
    own = {
        "listener.name.sasl_ssl.ssl.keystore.location": "/other.p12",
        "listener.name.sasl_ssl.ssl.keystore.type": "PKCS12",
        "listener.name.sasl_ssl.ssl.keystore.password": "x",
        "listener.name.sasl_ssl.ssl.enabled.protocols": "TLSv1.3",
    }
    first, second = (listener.tls for listener in listeners_of(Config({**BOTH, **FILE, **own})))
    assert first is not None
    assert second is not None
    assert (first.keystore.type, first.keystore.location) == ("PEM", "/broker.pem")
    assert (second.keystore.type, second.keystore.location) == ("PKCS12", "/other.p12")
    assert (first.versions, second.versions) == (VERSIONS, ("TLSv1.3",))


def test_sasl_listener_requires_certificates_only_by_its_own_config() -> None:
    settings = {**BOTH, **FILE, "ssl.client.auth": "required"}
    first, second = listeners_of(Config(settings))
    assert first.tls is not None
    assert second.tls is not None
    assert (first.tls.client_auth, second.tls.client_auth) == ("required", "none")
    assert (first.is_open, second.is_open) == (False, False)
    settings["listener.name.sasl_ssl.ssl.client.auth"] = "requested"
    second = listeners_of(Config(settings))[1]
    assert second.tls is not None
    assert second.tls.client_auth == "requested"


def test_listener_with_tls_but_no_client_auth_is_open() -> None:
    (listener,) = listeners_of(Config({"listeners": "SSL://:1", **FILE}))
    assert listener.is_open
    assert listener.protocol_number == 1


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "listener.name.ssl.ssl.keystore.location is missing"),
        (
            {**FILE, "ssl.keystore.type": "BKS", "ssl.keystore.password": "x"},
            "must be one of PEM, PKCS12, JKS",
        ),
        ({**FILE, "ssl.cipher.suites": "TLS_NULL"}, "the suite TLS_NULL is not supported"),
        ({**FILE, "ssl.cipher.suites": "TLS_AES_128_GCM_SHA256"}, "one by one"),
        ({**FILE, "ssl.principal.mapping.rules": "RULE:("}, "write RULE:pattern"),
        ({**FILE, "ssl.principal.mapping.rules": "RULE:(/x/"}, "is not a supported pattern"),
        ({**FILE, "ssl.principal.mapping.rules": "RULE:a/$1/"}, "has no group 1"),
    ],
)
def test_unusable_tls_settings_are_refused_in_one_line(settings, words) -> None:
    with pytest.raises(ConfigError) as caught:
        listeners_of(Config({"listeners": "SSL://:1", **settings}))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_empty_protocol_list_enables_all_tls_versions() -> None:
    settings = {**BOTH, **FILE, "listener.name.sasl_ssl.ssl.enabled.protocols": ""}
    assert [
        listener.tls and listener.tls.versions for listener in listeners_of(Config(settings))
    ] == [
        VERSIONS,
        VERSIONS,
    ]
    assert client_tls({"ssl.enabled.protocols": ""}).versions == VERSIONS


KEY, CHAIN = "ssl.keystore.key", "ssl.keystore.certificate.chain"
PASSWORD, TRUSTED = "ssl.keystore.password", "ssl.truststore.certificates"
STORE = {"ssl.keystore.location": "/broker.p12", "ssl.keystore.type": "PKCS12", PASSWORD: "x"}
TRUST = {"ssl.truststore.location": "/authority.pem", "ssl.truststore.type": "PEM"}


@pytest.mark.parametrize(
    ("settings", "refused"),
    [
        ({**FILE, KEY: "x"}, f"{CHAIN} is not"),
        ({**FILE, KEY: ""}, f"{CHAIN} is not"),
        ({**FILE, CHAIN: "x"}, f"{KEY} is not"),
        ({**FILE, CHAIN: ""}, f"{KEY} is not"),
        ({CHAIN: "x"}, f"{KEY} is not"),
        ({**FILE, KEY: "x", CHAIN: "x"}, f"{KEY} and ssl.keystore.location are both set"),
        ({**STORE, KEY: "x", CHAIN: "x"}, f"{KEY} is PEM"),
        ({KEY: "x", CHAIN: "x"}, f"{KEY} is PEM"),
        ({"ssl.keystore.type": "PEM", KEY: "x", CHAIN: "x", PASSWORD: "x"}, f"{PASSWORD} is set"),
        ({**FILE, PASSWORD: "x"}, f"{PASSWORD} is set"),
        ({**FILE, PASSWORD: ""}, f"{PASSWORD} is set"),
        ({PASSWORD: "x"}, f"{PASSWORD} is set"),
        ({"ssl.keystore.location": "/broker.p12"}, f"{PASSWORD} is not"),
        ({**FILE, TRUSTED: "x"}, f"{TRUSTED} is PEM"),
        ({**FILE, **TRUST, TRUSTED: "x"}, f"{TRUSTED} and ssl.truststore.location are both set"),
        ({**FILE, **TRUST, "ssl.truststore.password": "x"}, "ssl.truststore.password is set"),
        ({**FILE, "ssl.truststore.password": "x"}, "ssl.truststore.password is set"),
        (FILE, None),
        (STORE, None),
        ({**FILE, "ssl.key.password": "x"}, None),
        ({**FILE, **TRUST}, None),
        ({**FILE, "ssl.truststore.location": "/authority.p12"}, None),
        ({**FILE, "ssl.truststore.type": "PEM", TRUSTED: "x"}, None),
        ({"ssl.keystore.type": "PEM", KEY: "x", CHAIN: "x"}, None),
    ],
)
def test_conflicting_or_incomplete_store_settings_are_refused(settings, refused) -> None:
    """As by Kafka's DefaultSslEngineFactory, for listeners, outgoing connections and clients."""
    of_listener = {f"listener.name.ssl.{name}": value for name, value in settings.items()}
    for read in (
        lambda: listeners_of(Config({"listeners": "SSL://:1", **settings})),
        lambda: listeners_of(Config({"listeners": "SSL://:1", **of_listener})),
        lambda: outgoing_tls_settings(Config(settings), "SSL"),
        lambda: client_tls(settings),
    ):
        if refused is None:
            read()
            continue
        with pytest.raises(ConfigError) as caught:
            read()
        assert refused in str(caught.value)


@pytest.mark.parametrize("name", ["ssl.enabled.protocols", "listener.name.ssl.ssl.client.auth"])
def test_unknown_tls_values_are_refused(name) -> None:
    with pytest.raises(ConfigError, match="cannot be used"):
        Config({name: "SSLv3"})


def test_cipher_suites_use_java_names() -> None:
    names = (
        "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        "TLS_DHE_RSA_WITH_AES_128_CBC_SHA",
        "TLS_RSA_WITH_AES_128_GCM_SHA256",
    )
    suites = (
        "ECDHE-RSA-AES256-GCM-SHA384",
        "ECDHE-ECDSA-CHACHA20-POLY1305",
        "DHE-RSA-AES128-SHA",
        "AES128-GCM-SHA256",
    )
    assert suites_for_openssl(names, VERSIONS) == (suites, ("TLSv1.2",))
    of_13 = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
    assert suites_for_openssl(of_13, VERSIONS) == ((), ("TLSv1.3",))
    assert suites_for_openssl((), VERSIONS) == (None, VERSIONS)
    with pytest.raises(
        ValueError, match=r"no suite belongs to a version in ssl\.enabled\.protocols"
    ):
        suites_for_openssl(names, ("TLSv1.3",))


@pytest.mark.parametrize(
    ("rules", "subject", "name"),
    [
        ("DEFAULT", "CN=a,O=b", "CN=a,O=b"),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", "CN=svc,OU=ServiceUsers,O=x", "svc"),
        ("RULE:^CN=(.*?),OU=(.*?),.*$/$1@$2/L,DEFAULT", "CN=Al,OU=Ops,O=x", "al@ops"),
        ("RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U", "OU=x,CN=al", "AL"),
        ("RULE:^CN=x$/y/, DEFAULT", "CN=z", "CN=z"),
        ("RULE:^CN=x$/y/", "CN=z", None),
        (r"RULE:^CN=a\/(.*)$/$1/", "CN=a/b", "b"),
        ("RULE:^CN=(a,b)$/$1/,DEFAULT", "CN=a,b", "a,b"),
        ("", "CN=a", None),
    ],
)
def test_mapping_rules_turn_subjects_into_user_names(rules, subject, name) -> None:
    assert principal_name(principal_rules(rules), subject) == name
