"""Polls of the cluster itself: topics and brokers, the quorum, versions, visibility."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.client.cluster.api_versions import api_versions_of
from wirebroker.client.cluster.quorum import is_silence, quorum_with_short_timeout
from wirebroker.client.cluster_nodes import describe_cluster
from wirebroker.client.configs.configs import config_of_topics
from wirebroker.client.errors import ClientError, UnservedError
from wirebroker.codecs.primitives import uuid_text
from wirebroker.config.rows.release_features import METADATA_VERSION, release_name
from wirebroker.console.model.cluster_state import BrokerRow
from wirebroker.console.model.snapshot import QuorumInfo, QuorumNode
from wirebroker.console.model.topic_info import PartitionLayout, TopicLayout

if TYPE_CHECKING:
    from wirebroker.client.cluster.quorum import DescribedQuorum
    from wirebroker.console.model.cluster_state import ClusterState
    from wirebroker.console.model.polled_cluster import PolledCluster

_MIN_ISR: Final = "min.insync.replicas"
# Topics whose configs are read.
_MOST_TOPICS: Final = 100
# Bit of DESCRIBE in the authorized operations of the cluster.
_DESCRIBE: Final = 1 << 8
_NOT_TOLD: Final = -(1 << 31)


async def poll_metadata(cluster: PolledCluster) -> None:
    """Read brokers and topics with the leaders and replicas of their partitions.

    Raises:
        ClientError: No broker responds.
    """
    state = cluster.state
    answer = await cluster.timed(cluster.client.metadata())
    state.cluster_id = getattr(answer, "cluster_id", None)
    state.controller_id = answer.controller_id if answer.controller_id >= 0 else None
    state.brokers = {
        broker.node_id: BrokerRow(broker.host, broker.port, broker.rack, is_fenced=False)
        for broker in answer.brokers
    }
    await _poll_fenced(cluster)
    await _take_topics(cluster, answer.topics)
    for broker_id in state.unreachable.keys() - state.brokers.keys():
        del state.unreachable[broker_id]
    state.taken_ms = cluster.clock.now_ms()


async def _poll_fenced(cluster: PolledCluster) -> None:
    try:
        answer = await cluster.timed(describe_cluster(cluster.client, fenced=True, operations=True))
    except UnservedError:  # before Kafka 2.8
        return
    for broker in answer.brokers:
        if getattr(broker, "is_fenced", False):
            cluster.state.brokers[broker.broker_id] = BrokerRow(
                broker.host, broker.port, broker.rack, is_fenced=True
            )
    operations = answer.cluster_authorized_operations
    cluster.state.is_whole = None if operations == _NOT_TOLD else bool(operations & _DESCRIBE)


async def _take_topics(cluster: PolledCluster, topics: list[Any]) -> None:
    state = cluster.state
    slots = state.history.slots
    slices = cluster.slices()
    shared: dict[tuple[int, ...], tuple[int, ...]] = {}
    layouts: dict[str, TopicLayout] = {}
    for topic in topics:
        if topic.error_code and not topic.partitions:
            continue
        partitions: list[PartitionLayout] = []
        for row in sorted(topic.partitions, key=lambda row: row.partition_index):
            partitions.append(_partition_layout(row, shared))
            await slices.turn()
        topic_id = getattr(topic, "topic_id", bytes(16))
        first = slots.take(topic.name, topic_id, len(partitions)).first
        layout = TopicLayout(topic.name, topic_id, topic.is_internal, first, tuple(partitions))
        before = state.layouts.get(topic.name)
        layouts[topic.name] = before if before is not None and before == layout else layout
    slots.retain(layouts)
    if slots.is_sparse:
        state.forget_partitions()
        slots = state.history.slots
        for layout in layouts.values():
            count = len(layout.partitions)
            first = slots.take(layout.name, layout.topic_id, count).first
            layouts[layout.name] = layout._replace(first_slot=first)
    state.layouts = dict(sorted(layouts.items()))


def _partition_layout(row: Any, shared: dict[tuple[int, ...], tuple[int, ...]]) -> PartitionLayout:
    replicas, isr = tuple(row.replica_nodes), tuple(row.isr_nodes)
    offline = tuple(getattr(row, "offline_replicas", None) or ())
    return PartitionLayout(
        row.leader_id,
        getattr(row, "leader_epoch", -1),
        shared.setdefault(replicas, replicas),
        shared.setdefault(isr, isr),
        shared.setdefault(offline, offline),
    )


async def poll_min_isr(cluster: PolledCluster) -> None:
    """Read min.insync.replicas of topics with partitions that are not fully replicated."""
    state = cluster.state
    topics = [
        name
        for name, layout in state.layouts.items()
        if any(partition.is_under_replicated for partition in layout.partitions)
    ][:_MOST_TOPICS]
    values: dict[str, str | None] = {}
    if topics:
        values = await cluster.timed(config_of_topics(cluster.client, topics, _MIN_ISR))
    state.min_isr = {name: int(value) for name, value in values.items() if value}


async def poll_quorum(cluster: PolledCluster) -> None:
    """Read the quorum; its failure is part of the state.

    Raises:
        ClientError: The cluster refuses.
    """
    state = cluster.state
    try:
        quorum = await cluster.timed(quorum_with_short_timeout(cluster.client))
    except UnservedError:  # before KRaft
        state.quorum = None
    except ClientError as error:
        if not is_silence(error):
            raise
        before = state.quorum or QuorumInfo(-1, -1, -1, (), None)
        state.quorum = before._replace(failure=error.told or str(error))
    else:
        state.quorum = _quorum_info(quorum)
        state.controller_id = quorum.leader_id if quorum.leader_id >= 0 else None


def _quorum_info(quorum: DescribedQuorum) -> QuorumInfo:
    nodes = tuple(
        QuorumNode(
            replica.node_id,
            replica.is_voter,
            replica.end_offset,
            replica.lag,
            replica.lag_ms,
            uuid_text(replica.directory_id) if any(replica.directory_id) else "",
            tuple(quorum.endpoints.get(replica.node_id, ())),
            replica.fetched_ms,
            replica.caught_up_ms,
        )
        for replica in quorum.replicas
    )
    failure = None if quorum.leader_id >= 0 else "the quorum has no leader"
    return QuorumInfo(quorum.leader_id, quorum.leader_epoch, quorum.high_watermark, nodes, failure)


async def poll_versions(cluster: PolledCluster) -> None:
    """Read the release of each broker, by the metadata version that it supports."""

    async def read(broker_id: int) -> None:
        answer = await cluster.timed(api_versions_of(cluster.client, broker_id), broker_id)
        level = next(
            (
                feature.max_version
                for feature in getattr(answer, "supported_features", ())
                if feature.name == METADATA_VERSION
            ),
            None,
        )
        release = None if level is None else release_name(level)
        if release is not None:
            cluster.state.versions[broker_id] = release.partition("-")[0]

    await cluster.on_each_broker(read)
    _forget(cluster.state)


def _forget(state: ClusterState) -> None:
    for values in (state.versions, state.log_dirs):
        for broker_id in values.keys() - state.brokers.keys():
            del values[broker_id]
