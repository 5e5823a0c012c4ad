"""Hand-written encoder of the ShareFetch response (key 78), versions 1 and 2.

    response  int32 throttle_time_ms, int16 error_code, nullable string error_message,
              int32 acquisition_lock_timeout_ms,
              [topic: uuid topic_id,
                      [partition: int32 index, int16 error_code, nullable string error_message,
                       int16 acknowledge_error_code, nullable string acknowledge_error_message,
                       current_leader: int32 leader_id, int32 leader_epoch,
                       bytes records,
                       [acquired: int64 first_offset, int64 last_offset, int16 delivery_count]]],
              [node endpoint: int32 node_id, string host, int32 port, nullable string rack]

Source: KIP-932, KIP-1206, KIP-1222; class ShareFetchResponse.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from wirebroker.codecs.primitives import compact_nullable_string, compact_string, uvarint

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from wirebroker.codecs.hot.fetch_response import RecordsSlice
    from wirebroker.codecs.hot.produce_response import NodeEndpoint

_INT32: Final = Struct(">i")
# Through the error message, which is null.
_HEAD: Final = Struct(">ihBi")
_INDEX_AND_ERROR: Final = Struct(">ihBh")
_LEADER: Final = Struct(">iiB")
_ACQUIRED: Final = Struct(">qqhB")
# Results, and batches of acquired records, before the caller may interrupt.
_STEP: Final = 200


class ShareFetchResult:
    """The result for a partition.

    Attributes:
        current_leader: (leader id, leader epoch).
        acquired: (first offset, last offset, delivery count) of each batch.
    """

    __slots__ = (
        "acknowledge_error",
        "acknowledge_message",
        "acquired",
        "current_leader",
        "error_code",
        "index",
        "records",
    )

    def __init__(self, index: int, error_code: int = 0) -> None:
        self.index = index
        self.error_code = error_code
        self.acknowledge_error = 0
        self.acknowledge_message: str | None = None
        self.current_leader: tuple[int, int] = (0, 0)
        self.records: bytes | RecordsSlice = b""
        self.acquired: Sequence[tuple[int, int, int]] = ()

    @property
    def size(self) -> int:
        """Bytes of records."""
        records = self.records
        return len(records) if isinstance(records, bytes) else records.length


def encode_share_fetch(
    topics: Mapping[bytes, Sequence[ShareFetchResult]],
    *,
    lock_timeout_ms: int,
    error_code: int = 0,
    node_endpoints: Sequence[NodeEndpoint] = (),
) -> Generator[None, None, list[Any]]:
    """Encode a response's body in pieces: bytes, and the results' `records`, uncopied.

    Yields after some results, so that the caller can interrupt the encoding of many.
    """
    pieces: list[Any] = []
    head = [_HEAD.pack(0, error_code, 0, lock_timeout_ms), uvarint(len(topics) + 1)]
    count = 0
    for topic_id, results in topics.items():
        head += (topic_id, uvarint(len(results) + 1))
        for result in results:
            head.append(_encode_result(result))
            length = result.size
            head.append(uvarint(length + 1))
            if length:
                pieces += (b"".join(head), result.records)
                head = []
            head.append(uvarint(len(result.acquired) + 1))
            head += [_ACQUIRED.pack(*acquired, 0) for acquired in result.acquired]
            head.append(b"\x00")
            count += 1 + len(result.acquired)
            if count >= _STEP:
                count = 0
                yield
        head.append(b"\x00")
    head.append(uvarint(len(node_endpoints) + 1))
    for node_id, host, port, rack in node_endpoints:
        head += (
            _INT32.pack(node_id),
            compact_string(host),
            _INT32.pack(port),
            compact_nullable_string(rack),
            b"\x00",
        )
    head.append(b"\x00")
    pieces.append(b"".join(head))
    return pieces


def _encode_result(result: ShareFetchResult) -> bytes:
    fields = _INDEX_AND_ERROR.pack(result.index, result.error_code, 0, result.acknowledge_error)
    message = compact_nullable_string(result.acknowledge_message)
    return fields + message + _LEADER.pack(*result.current_leader, 0)
