"""Scripts of Kafka's bin directory that are not here, and what to use instead.

In the container image each has a link too (deploy/container/link-tools).
"""

from __future__ import annotations

from typing import Final

_CLIENTS: Final = "run it from a distribution of Apache Kafka: it works with this broker"
_CONNECT: Final = (
    "Kafka Connect is a program for itself: run it from Apache Kafka, with this broker"
)
_NOT_SERVED: Final = "the groups that it is about are not served (docs/compatibility.md)"
_ZOOKEEPER: Final = "there is no ZooKeeper and none is needed: start `wirebroker serve`"

# By name without .sh.
UNSERVED: Final = {
    "connect-distributed": _CONNECT,
    "connect-mirror-maker": _CONNECT,
    "connect-plugin-path": _CONNECT,
    "connect-standalone": _CONNECT,
    "kafka-client-metrics": "use `wirebroker kafka-configs --entity-type client-metrics`",
    "kafka-connect-distributed": _CONNECT,
    "kafka-connect-standalone": _CONNECT,
    "kafka-console-share-consumer": _NOT_SERVED,
    "kafka-consumer-perf-test": "use `wirebroker bench`",
    "kafka-delegation-tokens": "use `wirebroker token`",
    "kafka-e2e-latency": "use `wirebroker bench`",
    "kafka-jmx": "there is no JMX: read metrics over HTTP (docs/monitoring.md)",
    "kafka-metadata-shell": "use `wirebroker dump`",
    "kafka-mirror-maker": "use `wirebroker shadow`, or connect-mirror-maker of Apache Kafka",
    "kafka-preferred-replica-election": "use `wirebroker kafka-leader-election`",
    "kafka-replica-verification": "use `wirebroker verify`",
    "kafka-run-class": "there are no Java classes: use the verb of `wirebroker --help`",
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
# Families of names, where a name of the family is not above.
_FAMILIES: Final = {
    "kafka-streams-": _CLIENTS,
    "kafka-connect-": _CONNECT,
    "connect-": _CONNECT,
    "zookeeper-": _ZOOKEEPER,
}


def instead_of(name: str) -> str | None:
    """Return what to use instead of a script of Kafka; None if Kafka has no such script."""
    if name in UNSERVED:
        return UNSERVED[name]
    return next((each for start, each in _FAMILIES.items() if name.startswith(start)), None)
