"""Names of the metrics of connections and client quotas, as exporters spell them.

Kafka's MBeans `kafka.server:type=socket-server-metrics,clientSoftwareName=…` and
`kafka.server:type=Produce,user=…,client-id=…` get their names from the rules of the JMX exporter:

    strimzi      Strimzi's rules; for quotas, the exporter's own example for Kafka
    confluent    Confluent's rules; also the exporter without rules, which keeps capitals

wirebroker reports metrics with some of these names; its console reads all of them.
"""

from __future__ import annotations

from typing import Final

SOFTWARE_STRIMZI: Final = "kafka_server_socket_server_metrics_connections_software"
SOFTWARE_CONFLUENT: Final = "kafka_server_socketservermetrics_connections"
_SOFTWARE_WITHOUT_RULES: Final = "kafka_server_socket_server_metrics_connections"
SOFTWARE: Final = frozenset({SOFTWARE_STRIMZI, SOFTWARE_CONFLUENT, _SOFTWARE_WITHOUT_RULES})
# wirebroker's own, also by user.
CONNECTIONS: Final = "wirebroker_connections"

ACCEPT_RATE: Final = "kafka_server_socket_server_metrics_connection_accept_rate"

QUOTA_PREFIX: Final = "kafka_server_quota_"
# Type of a quota MBean in Kafka: its attributes.
QUOTA_ATTRIBUTES: Final = {
    "Produce": ("byte_rate", "throttle_time"),
    "Fetch": ("byte_rate", "throttle_time"),
    "Request": ("request_time", "throttle_time"),
    "ControllerMutation": ("mutation_rate", "throttle_time"),
}


def _quota_names() -> dict[str, tuple[str, str]]:
    """Map each name to its type ("" if a label has the type) and its attribute."""
    names: dict[str, tuple[str, str]] = {}
    for kind, attributes in QUOTA_ATTRIBUTES.items():
        for attribute in attributes:
            names[QUOTA_PREFIX + attribute] = "", attribute
            names[f"kafka_server_{kind}_{attribute}"] = kind, attribute
            names[f"kafka_server_{kind.lower()}_{attribute}"] = kind, attribute
    return names


QUOTA_NAMES: Final = _quota_names()
ALL: Final = frozenset({*SOFTWARE, CONNECTIONS, ACCEPT_RATE, *QUOTA_NAMES})
