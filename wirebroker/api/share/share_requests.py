"""What ShareFetch and ShareAcknowledge have in common: checks, and acknowledgements.

Source: Kafka's KafkaApis.handleAcknowledgements, getAcknowledgeBatchesFromShareFetchRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.base.clock import Slices
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.permissions import READ_GROUP, READ_TOPIC
from wirebroker.coordinator.share_partitions.acknowledgement import (
    Acknowledgement,
    check_acknowledgements,
    types_of,
)
from wirebroker.coordinator.share_partitions.share_sessions import (
    SessionMember,
    ShareSessionPartition,
)

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Coroutine

    from wirebroker.api.broker import Broker
    from wirebroker.authorization.access import RequestAccess
    from wirebroker.base.clock import Steps

# Of member ids.
_LONGEST_ID: Final = 36
_FIRST_WITH_RENEW: Final = 2
# Partitions and batches before other work may run.
_STEP: Final = 200
MOVED: Final = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})


class AcknowledgeError(NamedTuple):
    """The error of a partition's acknowledgements."""

    code: ErrorCode
    message: str | None = None


NO_ERROR: Final = AcknowledgeError(ErrorCode.NONE)


def checked_member(broker: Broker, access: RequestAccess | None, body: Any) -> SessionMember:
    """Return the member of a request.

    Raises:
        KafkaError: UNSUPPORTED_VERSION, INVALID_REQUEST, GROUP_AUTHORIZATION_FAILED.
    """
    if not broker.shares.configs.is_enabled:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    if body.group_id is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if access is not None and not access.may(READ_GROUP, body.group_id):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not body.member_id or len(body.member_id) > _LONGEST_ID:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    return SessionMember(body.group_id, body.member_id)


def topic_name(broker: Broker, topic_id: bytes) -> str | None:
    """Return the name of a topic, or None."""
    topic = broker.metadata.image.topics_by_id.get(topic_id)
    return None if topic is None else topic.name


def partition_error(
    broker: Broker, access: RequestAccess | None, name: str | None, partition: ShareSessionPartition
) -> ErrorCode:
    """Return why a partition cannot be used, before its share partition is looked up.

    `name` is that of its topic, when the session began to use it.
    """
    topic_id, index = partition
    if name is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if access is not None and not access.may(READ_TOPIC, name):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    topic = broker.metadata.image.topics.get(name)
    if topic is None or index not in topic.partitions:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if topic.topic_id != topic_id:
        return ErrorCode.UNKNOWN_TOPIC_ID  # it was created again
    return ErrorCode.NONE


def acknowledgements_of(body: Any) -> Steps[dict[ShareSessionPartition, list[Acknowledgement]]]:
    """Return the acknowledgements of a request; of a repeated partition the last ones."""
    found: dict[ShareSessionPartition, list[Acknowledgement]] = {}
    count = 0
    for topic in body.topics:
        for partition in topic.partitions:
            batches = found[ShareSessionPartition(topic.topic_id, partition.partition_index)] = []
            for batch in partition.acknowledgement_batches:
                types = yield from types_of(batch.acknowledge_types)
                batches.append(Acknowledgement(batch.first_offset, batch.last_offset, types))
                count += 1
                if count % _STEP == 0:
                    yield
            count += 1
            if count % _STEP == 0:
                yield
    return found


class Acknowledging:
    """The acknowledgements of one request."""

    __slots__ = ("_accepted", "_broker", "_empty", "_errors", "_member")

    def __init__(self, broker: Broker, member: SessionMember) -> None:
        self._broker = broker
        self._member = member
        self._accepted: dict[ShareSessionPartition, list[Acknowledgement]] = {}
        self._empty: list[ShareSessionPartition] = []
        # Of partitions that are refused before their share partitions are looked up.
        self._errors: dict[ShareSessionPartition, AcknowledgeError] = {}

    async def begin(
        self, access: RequestAccess | None, body: Any, version: int
    ) -> Coroutine[Any, Any, dict[ShareSessionPartition, AcknowledgeError]]:
        """Begin the changes; return what waits for the persister and returns the results."""
        slices = Slices(self._broker.clock)
        requested = await slices.run(acknowledgements_of(body))
        knows_renew, is_renew = version >= _FIRST_WITH_RENEW, getattr(body, "is_renew_ack", False)
        for partition, batches in requested.items():
            check = check_acknowledgements(batches, knows_renew=knows_renew, is_renew=is_renew)
            self._sort(access, partition, batches, is_valid=await slices.run(check))
            await slices.turn()
        if not self._accepted:
            # Partitions without batches have results only next to others with batches.
            self._broker.metrics.share_acknowledge_requests += 1
            return self._refused()
        return self._finish(await self._broker.shares.acknowledge(self._member, self._accepted))

    def _sort(
        self,
        access: RequestAccess | None,
        partition: ShareSessionPartition,
        batches: list[Acknowledgement],
        *,
        is_valid: bool,
    ) -> None:
        name = topic_name(self._broker, partition.topic_id)
        if name is not None and not is_valid:
            error = ErrorCode.INVALID_REQUEST
        else:
            error = partition_error(self._broker, access, name, partition)
        if error is not ErrorCode.NONE:
            self._errors[partition] = AcknowledgeError(error)
        elif batches:
            self._accepted[partition] = batches
        else:
            self._empty.append(partition)

    async def _refused(self) -> dict[ShareSessionPartition, AcknowledgeError]:
        return self._errors

    async def _finish(
        self, work: asyncio.Task[dict[ShareSessionPartition, KafkaError]]
    ) -> dict[ShareSessionPartition, AcknowledgeError]:
        failures = await work
        results = dict(self._errors)
        slices = Slices(self._broker.clock)
        for partition in self._accepted:
            failure = failures.get(partition)
            results[partition] = (
                NO_ERROR if failure is None else AcknowledgeError(failure.code, failure.message)
            )
            await slices.turn()
        results.update(dict.fromkeys(self._empty, NO_ERROR))
        return results


def current_leader(broker: Broker, partition: ShareSessionPartition) -> tuple[int, int]:
    """Return the leader and its epoch of a partition that has moved."""
    name = topic_name(broker, partition.topic_id)
    image = None if name is None else broker.metadata.image.partition(name, partition.partition)
    return (-1, -1) if image is None else (image.leader, image.leader_epoch)
