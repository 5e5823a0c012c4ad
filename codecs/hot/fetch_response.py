"""Hand-written encoder of the Fetch response (key 1), versions 4 to 18.

    response  int32 throttle_time_ms, (v7) int16 error_code, (v7) int32 session_id,
              [topic: string name or (v13) uuid topic_id,
                      [partition: int32 index, int16 error_code, int64 high_watermark,
                       int64 last_stable_offset, (v5) int64 log_start_offset,
                       nullable [int64 producer_id, int64 first_offset] aborted_transactions,
                       (v11) int32 preferred_read_replica, nullable bytes records,
                       (v12) tag 0: int32 epoch, int64 end_offset    diverging_epoch
                       (v12) tag 1: int32 leader_id, int32 epoch     current_leader
                       (v12) tag 2: int64 end_offset, int32 epoch    snapshot_id]],
              (v16) tag 0: node endpoints, as in Produce

Source: KIP-98, KIP-227, KIP-392, KIP-516, KIP-595, KIP-951; class FetchResponse.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Any, Final, Protocol

from wirebroker.codecs.hot.fetch import FIRST_FLEXIBLE, FIRST_TOPIC_ID
from wirebroker.codecs.hot.produce_response import encode_node_endpoints
from wirebroker.codecs.primitives import compact_string, string, uvarint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.codecs.hot.produce_response import NodeEndpoint

_INT32: Final = Struct(">i")
_ANSWER_V7: Final = Struct(">ihi")
_RESULT_V4: Final = Struct(">ihqq")
_RESULT_V5: Final = Struct(">ihqqq")
_PLAIN_V12: Final = Struct(">ihqqqBi")
_PAIR: Final = Struct(">qq")
_EPOCH_AND_OFFSET: Final = Struct(">iq")
_LEADER: Final = Struct(">ii")
_OFFSET_AND_EPOCH: Final = Struct(">qi")


class RecordsSlice(Protocol):
    """A range of a segment file."""

    @property
    def length(self) -> int:
        """Length in bytes."""
        ...


class FetchPartitionResult:
    """The result for a partition; the defaults suit an error.

    Attributes:
        diverging_epoch: (epoch, end offset).
        current_leader: (leader id, leader epoch).
        snapshot_id: (end offset, epoch).
        aborted_transactions: (producer id, first offset) of each.
    """

    __slots__ = (
        "aborted_transactions",
        "current_leader",
        "diverging_epoch",
        "error_code",
        "high_watermark",
        "index",
        "last_stable_offset",
        "log_start_offset",
        "preferred_read_replica",
        "records",
        "snapshot_id",
    )

    def __init__(  # noqa: PLR0917 - one per partition of every request
        self,
        index: int,
        error_code: int = 0,
        high_watermark: int = -1,
        last_stable_offset: int = -1,
        log_start_offset: int = -1,
        diverging_epoch: tuple[int, int] | None = None,
        current_leader: tuple[int, int] | None = None,
        snapshot_id: tuple[int, int] | None = None,
        aborted_transactions: Sequence[tuple[int, int]] | None = None,
        preferred_read_replica: int = -1,
        records: bytes | RecordsSlice | None = None,
    ) -> None:
        self.index = index
        self.error_code = error_code
        self.high_watermark = high_watermark
        self.last_stable_offset = last_stable_offset
        self.log_start_offset = log_start_offset
        self.diverging_epoch = diverging_epoch
        self.current_leader = current_leader
        self.snapshot_id = snapshot_id
        self.aborted_transactions = aborted_transactions
        self.preferred_read_replica = preferred_read_replica
        self.records = records


def encode_fetch(
    version: int,
    *,
    topics: Sequence[tuple[str, bytes, Sequence[FetchPartitionResult]]],
    error_code: int = 0,
    session_id: int = 0,
    throttle_time_ms: int = 0,
    node_endpoints: Sequence[NodeEndpoint] = (),
) -> list[Any]:
    """Encode a response's body in pieces: bytes, and the results' `records`, uncopied.

    `node_endpoints` (from version 16) are those of the leaders in the results.
    """
    pieces: list[Any] = []
    flexible = version >= FIRST_FLEXIBLE
    if version >= 7:
        head = [_ANSWER_V7.pack(throttle_time_ms, error_code, session_id)]
    else:
        head = [_INT32.pack(throttle_time_ms)]
    if not flexible:
        return _encode_classic_topics(version, topics, head)
    head.append(uvarint(len(topics) + 1))
    for name, topic_id, results in topics:
        head.append(topic_id if version >= FIRST_TOPIC_ID else compact_string(name))
        head.append(uvarint(len(results) + 1))
        for result in results:
            head.append(_encode_flexible(result))
            records = result.records
            if records is None:
                head.append(b"\x00")
            else:
                length = len(records) if isinstance(records, bytes) else records.length
                head.append(uvarint(length + 1))
                if length:
                    pieces += (b"".join(head), records)
                    head = []
            head.append(_encode_result_tags(result))
        head.append(b"\x00")
    if node_endpoints and version >= 16:
        head.append(encode_node_endpoints(node_endpoints))
    else:
        head.append(b"\x00")
    pieces.append(b"".join(head))
    return pieces


def _encode_flexible(result: FetchPartitionResult) -> bytes:
    aborted = result.aborted_transactions
    if aborted:
        return b"".join(
            (
                _RESULT_V5.pack(
                    result.index,
                    result.error_code,
                    result.high_watermark,
                    result.last_stable_offset,
                    result.log_start_offset,
                ),
                uvarint(len(aborted) + 1),
                *(_PAIR.pack(*transaction) + b"\x00" for transaction in aborted),
                _INT32.pack(result.preferred_read_replica),
            )
        )
    return _PLAIN_V12.pack(
        result.index,
        result.error_code,
        result.high_watermark,
        result.last_stable_offset,
        result.log_start_offset,
        0 if aborted is None else 1,
        result.preferred_read_replica,
    )


def _encode_result_tags(result: FetchPartitionResult) -> bytes:
    if (
        result.diverging_epoch is None
        and result.current_leader is None
        and result.snapshot_id is None
    ):
        return b"\x00"
    tags: list[bytes] = []
    if result.diverging_epoch is not None:
        tags.append(b"\x00\x0d" + _EPOCH_AND_OFFSET.pack(*result.diverging_epoch) + b"\x00")
    if result.current_leader is not None:
        tags.append(b"\x01\x09" + _LEADER.pack(*result.current_leader) + b"\x00")
    if result.snapshot_id is not None:
        tags.append(b"\x02\x0d" + _OFFSET_AND_EPOCH.pack(*result.snapshot_id) + b"\x00")
    return uvarint(len(tags)) + b"".join(tags)


def _encode_classic_topics(
    version: int,
    topics: Sequence[tuple[str, bytes, Sequence[FetchPartitionResult]]],
    head: list[bytes],
) -> list[Any]:
    pieces: list[Any] = []
    head.append(_INT32.pack(len(topics)))
    for name, _, results in topics:
        head += (string(name), _INT32.pack(len(results)))
        for result in results:
            head.append(_encode_classic(version, result))
            records = result.records
            if records is None:
                head.append(_INT32.pack(-1))
                continue
            length = len(records) if isinstance(records, bytes) else records.length
            head.append(_INT32.pack(length))
            if length:
                pieces += (b"".join(head), records)
                head = []
    if head:
        pieces.append(b"".join(head))
    return pieces


def _encode_classic(version: int, result: FetchPartitionResult) -> bytes:
    fields = (
        result.index,
        result.error_code,
        result.high_watermark,
        result.last_stable_offset,
    )
    aborted = result.aborted_transactions
    pieces = [
        _RESULT_V5.pack(*fields, result.log_start_offset)
        if version >= 5
        else _RESULT_V4.pack(*fields),
        _INT32.pack(-1 if aborted is None else len(aborted)),
    ]
    pieces += (_PAIR.pack(*transaction) for transaction in aborted or ())
    if version >= 11:
        pieces.append(_INT32.pack(result.preferred_read_replica))
    return b"".join(pieces)
