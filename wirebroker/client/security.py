r"""A client's settings, in Kafka's words: how it reaches a cluster, and says who it is.

    security.protocol=SASL_SSL
    sasl.mechanism=SCRAM-SHA-512
    sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \
        username="alice" password="alice-secret";
    ssl.truststore.type=PEM
    ssl.truststore.location=ca.pem

That is what the files of `--command-config` of Kafka's tools have. Of everything else in them
nothing is read; but what would have a login, or TLS, be done by a class of Java's is refused.

Source: Kafka's CommonClientConfigs, SaslConfigs, SslConfigs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.config.client_tls import client_tls
from wirebroker.config.lookup import PROTOCOLS
from wirebroker.config.oauth_login import HANDLER, RETRIEVER
from wirebroker.config.outgoing import LOGIN_MECHANISMS, OutgoingSecurity, login_of
from wirebroker.config.row import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping


def client_security(settings: Mapping[str, str]) -> OutgoingSecurity:
    """Return how the cluster is reached.

    Raises:
        ConfigError: A setting can't be used.
    """
    for name, value in settings.items():
        is_class = name.startswith(("sasl.", "ssl.")) and name.endswith(".class")
        if value and is_class and name not in {HANDLER, RETRIEVER}:
            raise ConfigError(f"{name} cannot be used: there are no classes of Java's here")
    protocol = settings.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in PROTOCOLS:
        raise ConfigError(f"security.protocol can be {', '.join(PROTOCOLS)}")
    tls = login = None
    if protocol.endswith("SSL"):
        tls = client_tls(settings)
    if protocol.startswith("SASL_"):
        mechanism = settings.get("sasl.mechanism", "GSSAPI")
        if mechanism not in LOGIN_MECHANISMS:
            served = ", ".join(LOGIN_MECHANISMS)
            raise ConfigError(f"sasl.mechanism={mechanism} is not served; there are {served}")
        line = settings.get("sasl.jaas.config", "")
        login = login_of(line, mechanism, "sasl.jaas.config", setting=settings.get)
    return OutgoingSecurity(tls=tls, login=login)
