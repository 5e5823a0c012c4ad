"""Metrics of this broker and, on the active controller, of the cluster.

Idle ratios of Kafka thread pools show the event loop's idle time.

Source: Kafka's ReplicaManager, QuorumController, GroupMetadataManager.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from wirebroker.base.metric_field import Kind
from wirebroker.metrics.rows import ShownRow


class BrokerPhase(IntEnum):
    """Kafka's numbers for the broker's state."""

    RECOVERY = 2
    RUNNING = 3
    PENDING_CONTROLLED_SHUTDOWN = 6


@dataclass(slots=True)
class BrokerCounts:
    """Counts of one walk through the broker."""

    state: BrokerPhase
    node_id: int = -1
    partitions: int = 0
    led: int = 0
    under_replicated: int = 0
    under_least: int = 0
    at_least: int = 0
    offline: int = 0
    offline_directories: int = 0
    cordoned_directories: int = 0
    classic_groups: Counter[str] = field(default_factory=Counter[str])  # by state
    group_offsets: int = 0
    fetch_sessions: int = 0
    fetch_session_partitions: int = 0
    # Waiting requests by delayed operation, counted per partition or group.
    waiting: Counter[str] = field(default_factory=Counter[str])
    # Idle part of the loop's time, 0 to 1.
    idle: float = 1.0


@dataclass(slots=True)
class ClusterCounts:
    """Counts of one walk through the metadata."""

    brokers: int = 0
    fenced_brokers: int = 0
    topics: int = 0
    partitions: int = 0
    offline_partitions: int = 0
    imbalanced_partitions: int = 0


_REPLICAS: Final = "kafka_server_replicamanager_"
_GROUPS: Final = "kafka_coordinator_group_groupmetadatamanager_"
_NETWORK: Final = "kafka_network_socketserver_"
_HANDLERS: Final = "kafka_server_kafkarequesthandlerpool_"
_SESSIONS: Final = "kafka_server_fetchsessioncache_"
_CONTROLLER: Final = "kafka_controller_kafkacontroller_"


def _groups_that_are(state: str) -> ShownRow[BrokerCounts]:
    return ShownRow(
        f"Classic groups that are {state}.",
        lambda counts: counts.classic_groups[state],
        jmx=f"{_GROUPS}numgroups{state.lower()}",
    )


PURGATORY_ROWS: Final[tuple[ShownRow[int], ...]] = (
    ShownRow(
        "Waiting requests, counted for each partition or group that they wait for.",
        lambda count: count,
        jmx="kafka_server_delayedoperationpurgatory_purgatorysize",
    ),
)
DELAYED_OPERATIONS: Final = ("Fetch", "Produce", "Rebalance")

BROKER_ROWS: Final[tuple[ShownRow[BrokerCounts], ...]] = (
    ShownRow(
        "State of the broker: 2 recovering, 3 running, 6 shutting down.",
        lambda counts: counts.state,
        jmx="kafka_server_kafkaserver_brokerstate",
    ),
    ShownRow("Replicas here.", lambda counts: counts.partitions, jmx=f"{_REPLICAS}partitioncount"),
    ShownRow("Partitions led here.", lambda counts: counts.led, jmx=f"{_REPLICAS}leadercount"),
    ShownRow(
        "Partitions led here with a replica out of sync.",
        lambda counts: counts.under_replicated,
        jmx=f"{_REPLICAS}underreplicatedpartitions",
    ),
    ShownRow(
        "Partitions led here that refuse acks=all.",
        lambda counts: counts.under_least,
        jmx=f"{_REPLICAS}underminisrpartitioncount",
    ),
    ShownRow(
        "Partitions led here that would refuse acks=all with one replica fewer.",
        lambda counts: counts.at_least,
        jmx=f"{_REPLICAS}atminisrpartitioncount",
    ),
    ShownRow(
        "Replicas in directories that are offline.",
        lambda counts: counts.offline,
        jmx=f"{_REPLICAS}offlinereplicacount",
    ),
    ShownRow(
        "Log directories that are offline.",
        lambda counts: counts.offline_directories,
        jmx="kafka_log_logmanager_offlinelogdirectorycount",
    ),
    ShownRow(
        "Log directories that get no new replicas (cordoned).",
        lambda counts: counts.cordoned_directories,
        jmx="kafka_log_logmanager_cordonedlogdirectorycount",
    ),
    ShownRow(
        "Classic groups.",
        lambda counts: counts.classic_groups.total(),
        jmx=f"{_GROUPS}numgroups",
    ),
    *map(
        _groups_that_are, ("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty")
    ),
    ShownRow("Committed offsets.", lambda counts: counts.group_offsets, jmx=f"{_GROUPS}numoffsets"),
    ShownRow(
        "Fetch sessions.",
        lambda counts: counts.fetch_sessions,
        jmx=f"{_SESSIONS}numincrementalfetchsessions",
    ),
    ShownRow(
        "Partitions in fetch sessions.",
        lambda counts: counts.fetch_session_partitions,
        jmx=f"{_SESSIONS}numincrementalfetchpartitionscached",
    ),
    ShownRow(
        "Idle fraction of the event loop, which serves the network.",
        lambda counts: counts.idle,
        strimzi=f"{_NETWORK}networkprocessoravgidle_percent",
        confluent=f"{_NETWORK}networkprocessoravgidlepercent",
    ),
    ShownRow(
        "Idle fraction of the event loop, which serves requests.",
        lambda counts: counts.idle,
        strimzi=f"{_HANDLERS}requesthandleravgidle_percent",
        confluent=f"{_HANDLERS}requesthandleravgidlepercent_oneminuterate",
    ),
)

CLUSTER_ROWS: Final[tuple[ShownRow[ClusterCounts], ...]] = (
    ShownRow("Brokers of the cluster.", lambda counts: counts.brokers, exporter="kafka_brokers"),
)

CONTROLLER_ROWS: Final[tuple[ShownRow[ClusterCounts], ...]] = (
    ShownRow(
        "Whether the active controller is in this process.",
        lambda _counts: 1,
        jmx=f"{_CONTROLLER}activecontrollercount",
    ),
    ShownRow(
        "Brokers that may lead.",
        lambda counts: counts.brokers - counts.fenced_brokers,
        jmx=f"{_CONTROLLER}activebrokercount",
    ),
    ShownRow(
        "Brokers that are fenced.",
        lambda counts: counts.fenced_brokers,
        jmx=f"{_CONTROLLER}fencedbrokercount",
    ),
    ShownRow("Topics.", lambda counts: counts.topics, jmx=f"{_CONTROLLER}globaltopiccount"),
    ShownRow(
        "Partitions.",
        lambda counts: counts.partitions,
        jmx=f"{_CONTROLLER}globalpartitioncount",
    ),
    ShownRow(
        "Partitions without a leader.",
        lambda counts: counts.offline_partitions,
        jmx=f"{_CONTROLLER}offlinepartitionscount",
    ),
    ShownRow(
        "Partitions not led by their preferred replica.",
        lambda counts: counts.imbalanced_partitions,
        jmx=f"{_CONTROLLER}preferredreplicaimbalancecount",
    ),
)

BUILD_ROWS: Final[tuple[ShownRow[None], ...]] = (
    ShownRow("The build.", lambda _: 1, Kind.GAUGE, own="wirebroker_build_info"),
    ShownRow("Whether the scrape succeeded.", lambda _: 1, kminion="kminion_exporter_up"),
)
BROKER_INFO_ROWS: Final[tuple[ShownRow[None], ...]] = (
    ShownRow("A broker and its address.", lambda _: 1, exporter="kafka_broker_info"),
)
