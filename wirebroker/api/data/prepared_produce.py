"""The prepared Produce: a fast path for requests like the last one on a connection (hot path).

A producer's requests to one topic differ in the correlation id, the partitions and the records; all
other bytes of requests and responses are the same. `serve` compares them, appends the records, and
fills in the response. It refuses nothing: any other request takes the full path (produce.py)
unchanged, and continues after partitions that are already appended (`take_appended`).

    request   key, version | correlation id | same ...... | count | index, length, records | no tags
    response  size | correlation id | same ... | index, error 0, offset, time, start | same

A response that waits for followers is deferred (deferred_produce.py). A prepared request is valid
while its partitions' serving epochs are unchanged (`_CachedPartition`).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from wirebroker.api.data.deferred_produce import (
    DeferredProduce,
    DeferredProduceOfSeveral,
    ProduceKind,
)
from wirebroker.codecs.errors import KafkaError
from wirebroker.codecs.hot.produce import FIRST_FLEXIBLE, FIRST_TOPIC_ID, ProduceTopic
from wirebroker.codecs.hot.produce_response import PartitionResult, encode_produce
from wirebroker.codecs.hot.repeated_frame import (
    HEAD_BYTES,
    MOST_PARTITIONS,
    SAME_START,
    AnswerKind,
    match,
)
from wirebroker.codecs.primitives import uvarint
from wirebroker.codecs.records.codec import Codec
from wirebroker.codecs.records.layout import CODEC_MASK, TRANSACTIONAL_FLAG
from wirebroker.codecs.records.walk import IS_QUICK
from wirebroker.net.frames.protocol import frame_answer
from wirebroker.replica.local_replica import LARGE_APPEND_BYTES, LARGE_WALK_BYTES
from wirebroker.replica.replica_state import ACKS_ALL
from wirebroker.request.session import Prepared
from wirebroker.storage.long_work import TakesLongError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wirebroker.api.broker import Broker
    from wirebroker.codecs.hot.produce import ProduceRequest
    from wirebroker.codecs.hot.repeated_frame import Part
    from wirebroker.replica.partition import Partition
    from wirebroker.request.deferred_response import DeferredResponse
    from wirebroker.request.request import Request
    from wirebroker.storage.log.append import AppendResult

# The first version with a log start offset in responses.
_FIRST_VERSION: Final = 5
_BASE_OFFSET_BYTES: Final = 8
# Bytes besides records; longer requests are not worth the memory.
_LONGEST_SAME_BYTES: Final = 4096
# Per connection, 200 bytes each.
MAX_CACHED_PARTITIONS: Final = 4 * MOST_PARTITIONS
# Longer frames with several partitions are appended in slices; shorter ones hold the loop for a few
# milliseconds. Compressed records within the second limit hold it for 15 ms at most.
_LONGEST_FRAME_BYTES: Final = LARGE_APPEND_BYTES if IS_QUICK else LARGE_WALK_BYTES
_LONGEST_PACKED_BYTES: Final = 4096
# Cached response templates, some 300 bytes each, shared by connections.
_MOST_KINDS: Final = 1024
# Unlikely numbers that locate the response's fields.
_MARK: Final = 0x1122334455667788
_MARKED_INDEX: Final = 0x55443322
_MARKED_NUMBERS: Final = _MARKED_INDEX.to_bytes(4) + bytes(2) + _MARK.to_bytes(8) * 3


class _CachedPartition:
    """A partition that took appends immediately in a serving epoch."""

    __slots__ = ("partition", "serving_epoch")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.serving_epoch = partition.serving_epoch

    def serves(self) -> bool:
        """Return whether the partition still takes appends immediately."""
        partition = self.partition
        return partition.serving_epoch == self.serving_epoch and not partition.is_appending


class PreparedProduce(Prepared):
    """The constant parts of a connection's Produce requests and their responses."""

    __slots__ = (
        "_acks",
        "_after",
        "_before",
        "_between",
        "_broker",
        "_cached_partitions",
        "_fill",
        "_has_matched",
        "_head",
        "_is_flexible",
        "_kind",
        "_kinds",
        "_now_ms",
        "_same",
        "_tail",
        "_topic",
        "_version",
    )

    def __init__(
        self,
        broker: Broker,
        request: Request,
        body: ProduceRequest,
        *,
        same: bytes,
    ) -> None:
        super().__init__(request.session.epoch, request.key << 16 | request.version)
        self._version = request.version
        self._broker = broker
        self._now_ms = broker.clock.now_ms
        self._is_flexible = request.version >= FIRST_FLEXIBLE
        self._head = bytes(request.frame[:HEAD_BYTES])
        self._same = same
        topic = body.topics[0]
        self._topic = topic.name, topic.topic_id
        self._acks = body.acks
        self._kind = ProduceKind(broker, request, self._topic, body.timeout_ms)
        # Partitions that a prepared request may name, by index.
        self._cached_partitions: dict[int, _CachedPartition] = {}
        # The template for one partition; separate attributes are faster.
        kind = _kind_of(self._version, topic.name, topic.topic_id, 1)
        self._fill = kind.fill
        self._before, self._between = kind.before, kind.between
        self._tail, self._after = kind.tail, kind.behind
        # Templates by the number of partitions; some 300 bytes each.
        self._kinds: dict[int, AnswerKind] = {}
        # Whether the last frame matched, except for its partitions.
        self._has_matched = False

    def is_for(self, request: Request) -> bool:
        """Return whether this request's frame has matched in `serve`."""
        return self._has_matched and self.epoch == request.session.epoch

    def learn(self, partitions: Sequence[Partition]) -> None:
        """Accept these partitions in later requests, in their current epochs."""
        cached_partitions = self._cached_partitions
        for partition in partitions:
            index = partition.index
            if index not in cached_partitions and len(cached_partitions) >= MAX_CACHED_PARTITIONS:
                del cached_partitions[next(iter(cached_partitions))]  # the oldest
            cached_partitions[index] = _CachedPartition(partition)

    def take_appended(self) -> Mapping[int, AppendResult] | None:
        """Return what `serve` appended, by index, before it returned None."""
        appended, self.begun = self.begun, None
        return appended

    def serve(self, frame: memoryview) -> bytes | DeferredResponse | None:  # noqa: PLR0911 - each is a reason
        """Append a request's records if it is like the prepared one.

        Args:
            frame: A whole frame, writable.

        Returns:
            The response with its length; None if the request needs the full path.
        """
        self.begun = None
        matched = match(frame, self._head, self._same, self._is_flexible)
        if matched is None:
            self._has_matched = False
            return None
        self._has_matched = True
        correlation_id, parts = matched
        if len(parts) > 1:
            return self._serve_several(correlation_id, parts, len(frame))
        index, records, attributes = parts[0]
        cached = self._cached_partitions.get(index)
        if cached is None or attributes & TRANSACTIONAL_FLAG:
            return None
        partition = cached.partition
        # `cached.serves` inlined, for each small request.
        if partition.serving_epoch != cached.serving_epoch or partition.is_appending:
            return None
        now_ms = self._now_ms()
        is_simple = not attributes & CODEC_MASK and len(records) <= LARGE_WALK_BYTES
        if not is_simple and partition.takes_long(records):
            return None
        done = self._append(partition, records, now_ms)
        if done is None:
            return None
        answer = self._fill(
            self._before,
            correlation_id,
            self._between,
            index,
            done.base_offset,
            done.log_append_time_ms,
            done.log_start_offset,
            self._tail,
            self._after,
        )
        if partition.log.high_watermark > done.last_offset or self._acks != ACKS_ALL:
            return answer
        deferred = DeferredProduce(self._kind, partition, done, correlation_id, answer)
        partition.deferred_responses(ACKS_ALL).add(deferred)
        return deferred

    def _serve_several(
        self, correlation_id: int, parts: Sequence[Part], frame_bytes: int
    ) -> bytes | DeferredResponse | None:
        partitions = self._ready(parts, frame_bytes)
        if partitions is None:
            return None
        kind = self._kinds.get(len(parts))
        if kind is None:
            kind = _kind_of(self._version, *self._topic, len(parts))
            self._kinds[len(parts)] = kind
        now_ms = self._now_ms()
        tail = kind.tail
        fields: list[Any] = [kind.before, correlation_id, kind.between]
        appended: list[tuple[Partition, AppendResult]] = []
        for (index, records, _), partition in zip(parts, partitions, strict=True):
            done = self._append(partition, records, now_ms)
            if done is None:
                self.begun = {earlier.index: result for earlier, result in appended} or None
                return None
            appended.append((partition, done))
            fields += (
                index,
                done.base_offset,
                done.log_append_time_ms,
                done.log_start_offset,
                tail,
            )
        fields.append(kind.behind)
        answer = kind.fill(*fields)
        if self._acks == ACKS_ALL:
            for partition, done in appended:
                if partition.log.high_watermark <= done.last_offset:
                    return DeferredProduceOfSeveral(self._kind, appended, correlation_id, answer)
        return answer

    def _ready(self, parts: Sequence[Part], frame_bytes: int) -> list[Partition] | None:
        """Return the partitions of a request; None if it needs the full path or repeats one."""
        if frame_bytes > _LONGEST_FRAME_BYTES:
            return None
        cached_partitions = self._cached_partitions
        partitions: list[Partition] = []
        indexes: set[int] = set()
        for index, _, attributes in parts:
            cached = cached_partitions.get(index)
            if (
                cached is None
                or attributes & TRANSACTIONAL_FLAG
                or not cached.serves()
                or (
                    attributes & CODEC_MASK
                    and (
                        frame_bytes > _LONGEST_PACKED_BYTES or attributes & CODEC_MASK > Codec.ZSTD
                    )
                )
            ):
                return None
            indexes.add(index)
            partitions.append(cached.partition)
        return partitions if len(indexes) == len(parts) else None

    def _append(
        self, partition: Partition, records: memoryview, now_ms: int
    ) -> AppendResult | None:
        """Append to one partition; on failure return None with the records unchanged."""
        try:
            return partition.append(records, now_ms=now_ms, request_version=self._version)
        except (KafkaError, TakesLongError):
            return None  # nothing was changed: the full path finds it again
        except OSError as fault:
            # Nothing was written. Restore the batch for the full path, which tries again.
            self._broker.replicas.disk_failed(partition, fault)
            records[:_BASE_OFFSET_BYTES] = bytes(_BASE_OFFSET_BYTES)
            return None


def prepare(
    broker: Broker,
    request: Request,
    body: ProduceRequest,
    partitions: Sequence[Partition],
    last: Prepared | None,
) -> PreparedProduce | None:
    """Return the fast path for requests like one that was appended immediately.

    Args:
        broker: The broker.
        request: The request.
        body: Its content: one topic, no transaction, acks other than 0.
        partitions: All its partitions.
        last: The connection's previous fast path.

    Returns:
        None if the request is not supported.
    """
    if request.version < _FIRST_VERSION or len(partitions) > MOST_PARTITIONS:
        return None
    for partition in partitions:
        if (
            not partition.takes_at_once(body.acks)
            # It would be stamped in place, and could not take the full path after a refusal.
            or partition.log.settings.message_timestamp_type == "LogAppendTime"
        ):
            return None
    # One object serves all sets of partitions: creating one costs more than it saves once.
    if isinstance(last, PreparedProduce) and last.is_for(request):
        last.learn(partitions)
        return last
    count_at = _count_at(request, body.topics[0].name)
    if count_at > _LONGEST_SAME_BYTES:  # the header's tagged fields may be long
        return None
    frame = request.frame
    same = bytes(frame[SAME_START:count_at])
    is_flexible = request.version >= FIRST_FLEXIBLE
    if match(frame, bytes(frame[:HEAD_BYTES]), same, is_flexible) is None:
        return None
    prepared = PreparedProduce(broker, request, body, same=same)
    prepared.learn(partitions)
    return prepared


def _count_at(request: Request, topic: str) -> int:
    """Return the position of the partition count in a request of one topic.

    It has no transactional id, and counts in their shortest encoding.
    """
    name_bytes = len(topic.encode())
    if request.version >= FIRST_TOPIC_ID:
        fields_bytes = 24
    elif request.version >= FIRST_FLEXIBLE:
        fields_bytes = 8 + len(uvarint(name_bytes + 1)) + name_bytes
    else:
        fields_bytes = 14 + name_bytes
    return request.position + fields_bytes


@lru_cache(_MOST_KINDS)
def _kind_of(version: int, topic: str, topic_id: bytes, count: int) -> AnswerKind:
    """Return the template of responses for a number of partitions of a topic."""
    answer = _example(version, topic, topic_id, count)
    part_bytes = len(_example(version, topic, topic_id, count + 1)) - len(answer)
    return AnswerKind(answer, count, at=answer.index(_MARKED_NUMBERS), part_bytes=part_bytes)


def _example(version: int, topic: str, topic_id: bytes, count: int) -> bytes:
    result = PartitionResult(_MARKED_INDEX, 0, _MARK, _MARK, _MARK)
    # Without partitions, which refer to the frame.
    body = encode_produce(version, [(ProduceTopic(topic, topic_id, []), [result] * count)])
    (answer,) = frame_answer(0, [body], is_flexible=version >= FIRST_FLEXIBLE)
    assert isinstance(answer, bytes)
    return answer
