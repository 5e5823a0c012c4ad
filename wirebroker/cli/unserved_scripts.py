"""Unsupported scripts of the Kafka bin directory, and what to use instead.

The container image has a link for each (deploy/container/link-tools).
"""

from __future__ import annotations

from typing import Final

_CLIENTS: Final = "run it from Apache Kafka; it works with this broker"
_CONNECT: Final = "Kafka Connect is a separate program: run it from Apache Kafka, with this broker"
_NOT_SERVED: Final = "its groups are not supported (docs/compatibility.md)"
_ZOOKEEPER: Final = "ZooKeeper is not used: start `wirebroker serve`"

# By name, without .sh.
UNSERVED: Final = {
    "connect-distributed": _CONNECT,
    "connect-mirror-maker": _CONNECT,
    "connect-plugin-path": _CONNECT,
    "connect-standalone": _CONNECT,
    "kafka-client-metrics": (
        "client metrics (KIP-714) are not supported: read the broker's metrics (docs/monitoring.md)"
    ),
    "kafka-connect-distributed": _CONNECT,
    "kafka-connect-standalone": _CONNECT,
    "kafka-console-share-consumer": _NOT_SERVED,
    "kafka-consumer-perf-test": "use `wirebroker bench`",
    "kafka-delegation-tokens": "use `wirebroker token`",
    "kafka-e2e-latency": "use `wirebroker bench`",
    "kafka-jmx": "JMX is not supported: read metrics over HTTP (docs/monitoring.md)",
    "kafka-metadata-shell": "use `wirebroker dump`",
    "kafka-mirror-maker": "use `wirebroker shadow`, or connect-mirror-maker of Apache Kafka",
    "kafka-preferred-replica-election": "use `wirebroker kafka-leader-election`",
    "kafka-replica-verification": "use `wirebroker verify`",
    "kafka-run-class": "Java classes are not supported: use a verb of `wirebroker --help`",
    "kafka-server-start": "use `wirebroker serve --config FILE`",
    "kafka-server-stop": "send SIGTERM to the process of `wirebroker serve`",
    "kafka-share-consumer-perf-test": _NOT_SERVED,
    "kafka-share-groups": "use `wirebroker share`",
    "kafka-streams-application-reset": _CLIENTS,
    "kafka-streams-groups": _NOT_SERVED,
    "kafka-verifiable-consumer": "use `wirebroker consume`",
    "kafka-verifiable-producer": "use `wirebroker produce`",
    "kafka-verifiable-share-consumer": _NOT_SERVED,
    "trogdor": "use `wirebroker bench`",
    "zookeeper-security-migration": _ZOOKEEPER,
    "zookeeper-server-start": _ZOOKEEPER,
    "zookeeper-server-stop": _ZOOKEEPER,
    "zookeeper-shell": _ZOOKEEPER,
}
# Prefixes of other names.
_FAMILIES: Final = {
    "kafka-streams-": _CLIENTS,
    "kafka-connect-": _CONNECT,
    "connect-": _CONNECT,
    "zookeeper-": _ZOOKEEPER,
}


def replacement_of(name: str) -> str | None:
    """Return what to use instead of a script of Kafka; None if Kafka has no such script."""
    if name in UNSERVED:
        return UNSERVED[name]
    return next(
        (replacement for start, replacement in _FAMILIES.items() if name.startswith(start)), None
    )
