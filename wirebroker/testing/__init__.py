"""A Kafka broker for tests; see docs/testing.md.

    with wirebroker.testing.Broker() as broker:
        broker.create_topic("orders", partitions=3)
        run_my_service(bootstrap_servers=broker.bootstrap_servers)
        assert broker.wait_for("orders", 1)[0].value == b"..."

Every pytest run of a user loads plugin.py, so names are imported on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from wirebroker.client.groups.groups import ListedGroup
    from wirebroker.codecs.errors import KafkaError
    from wirebroker.testing.broker.broker import Broker
    from wirebroker.testing.broker.broker_clock import BrokerClock
    from wirebroker.testing.broker.broker_faults import BrokerFaults, SetFault
    from wirebroker.testing.clients.topic_record import TopicRecord
    from wirebroker.testing.cluster.cluster import Cluster
    from wirebroker.testing.cluster.cluster_node import ClusterNode
    from wirebroker.testing.data.snapshots import Snapshot
    from wirebroker.testing.delivery.broker_delivery import BrokerDelivery
    from wirebroker.testing.requests.recorded_request import RecordedRequest

__all__ = [
    "Broker",
    "BrokerClock",
    "BrokerDelivery",
    "BrokerFaults",
    "Cluster",
    "ClusterNode",
    "KafkaError",
    "ListedGroup",
    "RecordedRequest",
    "SetFault",
    "Snapshot",
    "TopicRecord",
]

_HOMES: Final = {
    "Broker": "wirebroker.testing.broker.broker",
    "BrokerClock": "wirebroker.testing.broker.broker_clock",
    "BrokerDelivery": "wirebroker.testing.delivery.broker_delivery",
    "BrokerFaults": "wirebroker.testing.broker.broker_faults",
    "Cluster": "wirebroker.testing.cluster.cluster",
    "ClusterNode": "wirebroker.testing.cluster.cluster_node",
    "SetFault": "wirebroker.testing.broker.broker_faults",
    "KafkaError": "wirebroker.codecs.errors",
    "ListedGroup": "wirebroker.client.groups.groups",
    "RecordedRequest": "wirebroker.testing.requests.recorded_request",
    "Snapshot": "wirebroker.testing.data.snapshots",
    "TopicRecord": "wirebroker.testing.clients.topic_record",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
