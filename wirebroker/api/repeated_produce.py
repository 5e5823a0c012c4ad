"""A Produce request that is like the last one on its connection: a short way through (hot path).

A producer's requests to one partition differ in the correlation id, the length of the records and
the records; all other bytes are the same, so they need not be read again, nor does the answer have
to be put together: it differs in the correlation id and three numbers. `serve` compares, appends,
and fills in. Whatever is not plain goes the whole way (produce.py), with the frame as it came: a
memo never refuses anything, and never answers an error.

    frame   key, version | correlation id | same ...... index | length | records | no tags
    answer  size | correlation id | same ... index, error 0 | offset, time, start | same

It spares half of our own time: 3 of 6 us compiled, 8 of 16 not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.cluster.partition import LARGE_WALK_BYTES
from wirebroker.codecs.errors import KafkaError
from wirebroker.codecs.primitives import uvarint
from wirebroker.codecs.produce import FIRST_FLEXIBLE, FIRST_TOPIC_ID
from wirebroker.codecs.produce_response import PartitionResult, encode_produce
from wirebroker.codecs.record_batch import CODEC_MASK, TRANSACTIONAL_FLAG
from wirebroker.codecs.repeated_frame import (
    CLASSIC_LENGTH,
    HEAD_BYTES,
    NO_TAGS,
    SAME_START,
    fill,
    match,
)
from wirebroker.net.protocol import frame_answer

if TYPE_CHECKING:
    from wirebroker.api.registry import Request
    from wirebroker.broker import Broker
    from wirebroker.cluster.partition import Partition
    from wirebroker.codecs.produce import ProduceRequest

# The first with a log start offset in its answer.
_FIRST_VERSION: Final = 5
_BASE_OFFSET_BYTES: Final = 8
# Longer requests without their records are not worth the memory.
_LONGEST_SAME_BYTES: Final = 4096
# An unlikely number, to find the answer's fields.
_MARK: Final = 0x1122334455667788


class RepeatedProduce:
    """What stays the same in a connection's Produce requests, and in their answers."""

    __slots__ = (
        "_acks",
        "_answer",
        "_broker",
        "_head",
        "_is_flexible",
        "_now_ms",
        "_numbers_at",
        "_partition",
        "_same",
        "_settings",
        "_version",
    )

    def __init__(
        self,
        broker: Broker,
        request: Request,
        wanted: ProduceRequest,
        partition: Partition,
        *,
        length_at: int,
    ) -> None:
        """Remember a request that was served; see `remember`."""
        frame = request.frame
        self._version = request.version
        self._acks = wanted.acks
        self._partition = partition
        self._settings = partition.log.settings
        self._broker = broker
        self._now_ms = broker.clock.now_ms
        self._is_flexible = request.version >= FIRST_FLEXIBLE
        self._head = bytes(frame[:HEAD_BYTES])
        self._same = bytes(frame[SAME_START:length_at])
        result = PartitionResult(partition.index, 0, _MARK, _MARK, _MARK)
        body = encode_produce(request.version, [(wanted.topics[0], [result])])
        (answer,) = frame_answer(0, [body], is_flexible=self._is_flexible)
        assert isinstance(answer, bytes)
        self._answer = answer
        self._numbers_at = answer.index(_MARK.to_bytes(8) * 3)

    def serve(self, frame: memoryview) -> bytes | None:
        """Append a request's records if it is like the one remembered.

        Args:
            frame: A whole frame, writable.

        Returns:
            The answer with its length; None: it has to go the whole way, nothing has happened.
        """
        found = match(frame, self._head, self._same, self._is_flexible)
        if found is None:
            return None
        correlation_id, start, stop, attributes = found
        partition = self._partition
        log = partition.log
        if (
            attributes & TRANSACTIONAL_FLAG
            or log.settings is not self._settings
            or partition.is_appending
        ):
            return None
        records = frame[start:stop]
        now_ms = self._now_ms()
        if (attributes & CODEC_MASK or stop - start > LARGE_WALK_BYTES) and partition.takes_long(
            records, now_ms=now_ms
        ):
            return None
        try:
            partition.check_leader()
            if self._acks == -1:
                partition.check_in_sync()
            done = partition.append(records, now_ms=now_ms, request_version=self._version)
        except KafkaError:
            return None  # before anything was changed, so it will be found again
        except OSError as fault:  # another name: a compiled one has one type
            # Nothing was written. The batch is to be as it came: a full disk is tried once more.
            self._broker.replicas.disk_failed(partition, fault)
            records[:_BASE_OFFSET_BYTES] = bytes(_BASE_OFFSET_BYTES)
            return None
        return fill(
            self._answer,
            self._numbers_at,
            correlation_id,
            done.base_offset,
            done.log_append_time_ms,
            done.log_start_offset,
        )


def remember(
    broker: Broker, request: Request, wanted: ProduceRequest, partition: Partition
) -> RepeatedProduce | None:
    """Return the memo of a request that was served without a fault and at once.

    Args:
        broker: Which served it.
        request: In which `wanted` was.
        wanted: Of one partition, without a transaction, with acks other than 0.
        partition: This partition.

    Returns:
        None if its bytes are not laid out as the short way expects.
    """
    records = wanted.topics[0].partitions[0][1]
    if (
        request.version < _FIRST_VERSION
        or records is None
        or not partition.commits_at_once
        # Stamped in place: if it is refused after that, it could not go the whole way.
        or partition.log.settings.message_timestamp_type == "LogAppendTime"
    ):
        return None
    length_at = _length_at(request, wanted.topics[0].name)
    is_flexible = request.version >= FIRST_FLEXIBLE
    length = uvarint(len(records) + 1) if is_flexible else CLASSIC_LENGTH.pack(len(records))
    tail = NO_TAGS if is_flexible else b""
    start = length_at + len(length)
    stop = start + len(records)
    frame = request.frame
    if (
        length_at > _LONGEST_SAME_BYTES  # tagged fields of the header may be long
        or len(frame) != stop + len(tail)
        or bytes(frame[length_at:start]) != length
        or bytes(frame[stop:]) != tail
    ):
        return None
    return RepeatedProduce(broker, request, wanted, partition, length_at=length_at)


def _length_at(request: Request, topic: str) -> int:
    """Return where the length of the records stands in a request of one partition.

    Without a transactional id and with every count as short as it can be written.
    """
    name_bytes = len(topic.encode())
    if request.version >= FIRST_TOPIC_ID:
        fields_bytes = 29
    elif request.version >= FIRST_FLEXIBLE:
        fields_bytes = 13 + len(uvarint(name_bytes + 1)) + name_bytes
    else:
        fields_bytes = 22 + name_bytes
    return request.position + fields_bytes
