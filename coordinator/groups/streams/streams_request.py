"""A StreamsGroupHeartbeat request, and the checks that need no group.

Source: Kafka's KafkaApis.handleStreamsGroupHeartbeat,
GroupCoordinatorService.throwIfStreamsGroupHeartbeatRequestIsInvalid.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.controller.image.topic_names import check_topic_name, is_internal
from wirebroker.coordinator.groups.streams.request_bounds import TASK_FIELDS, check_topology
from wirebroker.coordinator.groups.streams.streams_member import (
    JOIN_EPOCH,
    LEAVE_STATIC_EPOCH,
)
from wirebroker.coordinator.groups.streams.task_offsets import reported_size
from wirebroker.coordinator.groups.topologies.topology import topic_names

if TYPE_CHECKING:
    from collections.abc import Iterable

_NO_TIMEOUT: Final = -1


class StreamsHeartbeat(NamedTuple):
    """A request and its client.

    Attributes:
        is_long: Whether the request has so many bytes that its topology may be large.
    """

    body: Any
    version: int
    client_id: str
    client_host: str
    is_long: bool = False

    @property
    def size_bytes(self) -> int:
        """Memory that the member will take, about."""
        body = self.body
        texts = (body.member_id, body.instance_id, body.rack_id, body.process_id)
        size = sum(len(text or "") for text in texts)
        size += sum(len(tag.key) + len(tag.value) for tag in body.client_tags or ())
        size += len(body.user_endpoint.host) if body.user_endpoint is not None else 0
        size += reported_size(body.task_offsets) + reported_size(body.task_end_offsets)
        return size + (0 if body.topology is None else _topology_size(body.topology))

    def check(self) -> None:
        """Check the fields.

        Raises:
            KafkaError: STREAMS_INVALID_TOPOLOGY or INVALID_REQUEST.
        """
        body = self.body
        if body.topology is not None:
            _check_topics(body.topology)
            if any(entry.source_topic_regex for entry in body.topology.subtopologies):
                raise _invalid("Regular expressions for source topics are not supported yet.")
        _refuse_blank(body.member_id, "MemberId can't be empty.")
        _refuse_blank(body.group_id, "GroupId can't be empty.")
        _refuse_blank(body.instance_id, "InstanceId can't be empty.")
        _refuse_blank(body.rack_id, "RackId can't be empty.")
        if body.member_epoch == JOIN_EPOCH:
            self._check_join()
        elif body.member_epoch == LEAVE_STATIC_EPOCH and body.instance_id is None:
            raise _invalid("InstanceId can't be null.")
        elif body.member_epoch < LEAVE_STATIC_EPOCH:
            raise _invalid(
                f"MemberEpoch is {body.member_epoch}, but must be greater than or equal to -2."
            )
        tasks = [getattr(body, name) for name in TASK_FIELDS]
        if any(each is not None for each in tasks) and any(each is None for each in tasks):
            raise _invalid("If one task-type is non-null, all must be non-null.")
        if body.member_epoch != JOIN_EPOCH and body.topology is not None:
            raise _invalid("Topology can only be provided when (re-)joining.")

    def _check_join(self) -> None:
        body = self.body
        if body.rebalance_timeout_ms == _NO_TIMEOUT:
            raise _invalid("RebalanceTimeoutMs must be provided in first request.")
        for name, shown in zip(TASK_FIELDS, ("Active", "Standby", "Warmup"), strict=True):
            tasks = getattr(body, name)
            if tasks is None or tasks:
                raise _invalid(f"{shown}Tasks must be empty when (re-)joining.")
        if body.topology is None:
            raise _invalid("Topology must be non-null when (re-)joining.")
        for subtopology in body.topology.subtopologies:
            for topic in subtopology.state_changelog_topics:
                if topic.partitions:
                    raise KafkaError(
                        ErrorCode.STREAMS_INVALID_TOPOLOGY,
                        f"Changelog topic {topic.name} must have an undefined partition count, but "
                        f"it is set to {topic.partitions}.",
                    )


def has_valid_topics(topology: Any) -> bool:
    """Return whether the topology of a request names topics that it may have."""
    try:
        _check_topics(topology)
    except KafkaError:
        return False
    return True


def _check_topics(topology: Any) -> None:
    """Refuse Kafka's internal topics, invalid names, and too many topics.

    Raises:
        KafkaError: STREAMS_INVALID_TOPOLOGY, INVALID_REQUEST.
    """
    check_topology(topology)
    names = dict.fromkeys(topic_names(topology))
    prohibited = [name for name in names if is_internal(name)]
    if prohibited:
        raise KafkaError(
            ErrorCode.STREAMS_INVALID_TOPOLOGY,
            f"Use of Kafka internal topics {','.join(prohibited)} in a Kafka Streams topology is "
            "prohibited.",
        )
    invalid = list(_invalid_names(names))
    if invalid:
        raise KafkaError(
            ErrorCode.STREAMS_INVALID_TOPOLOGY,
            f"Topic names {','.join(invalid)} are not valid topic names.",
        )


def _invalid_names(names: Iterable[str]) -> Iterable[str]:
    for name in names:
        try:
            check_topic_name(name)
        except KafkaError:
            yield name


def _topology_size(topology: Any) -> int:
    size = sum(map(len, topic_names(topology)))
    for subtopology in topology.subtopologies:
        size += len(subtopology.subtopology_id)
        topics = (*subtopology.state_changelog_topics, *subtopology.repartition_source_topics)
        size += sum(
            len(config.key) + len(config.value)
            for topic in topics
            for config in topic.topic_configs
        )
    return size


def _refuse_blank(value: str | None, message: str) -> None:
    if value is not None and not value.strip():
        raise _invalid(message)


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
