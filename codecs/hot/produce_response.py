"""Hand-written encoder of the Produce response (key 0), versions 3 to 13.

    response  [topic: string name or (v13) uuid topic_id,
                      [partition: int32 index, int16 error_code, int64 base_offset,
                       int64 log_append_time_ms, (v5) int64 log_start_offset,
                       (v8) [int32 batch_index, nullable string message] record_errors,
                       (v8) nullable string error_message,
                       (v10) tag 0: int32 leader_id, int32 leader_epoch]]
              int32 throttle_time_ms,
              (v10) tag 0: [int32 node_id, string host, int32 port, nullable string rack]

Source: KIP-467, KIP-516, KIP-951; class ProduceResponse.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final, TypeAlias

from wirebroker.codecs.hot.produce import FIRST_FLEXIBLE, FIRST_TOPIC_ID
from wirebroker.codecs.primitives import (
    compact_nullable_string,
    compact_string,
    nullable_string,
    string,
    uvarint,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.codecs.hot.produce import ProduceTopic

_INT32: Final = Struct(">i")
_LEADER: Final = Struct(">ii")
_RESULT_V3: Final = Struct(">ihqq")
_RESULT_V5: Final = Struct(">ihqqq")
# Without record errors and message, as in almost every response.
_PLAIN_V8: Final = Struct(">ihqqqih")
_PLAIN_V9: Final = Struct(">ihqqqBxx")

# Node id, host, port and rack.
NodeEndpoint: TypeAlias = "tuple[int, str, int, str | None]"


class PartitionResult:
    """The result for a partition; the defaults suit an error.

    Attributes:
        record_errors: (index of the record in its batch, message).
        current_leader: (leader id, leader epoch), for NOT_LEADER_OR_FOLLOWER.
    """

    __slots__ = (
        "base_offset",
        "current_leader",
        "error_code",
        "error_message",
        "index",
        "log_append_time_ms",
        "log_start_offset",
        "record_errors",
    )

    def __init__(  # noqa: PLR0917 - one per partition of every request
        self,
        index: int,
        error_code: int = 0,
        base_offset: int = -1,
        log_append_time_ms: int = -1,
        log_start_offset: int = -1,
        record_errors: Sequence[tuple[int, str | None]] = (),
        error_message: str | None = None,
        current_leader: tuple[int, int] | None = None,
    ) -> None:
        self.index = index
        self.error_code = error_code
        self.base_offset = base_offset
        self.log_append_time_ms = log_append_time_ms
        self.log_start_offset = log_start_offset
        self.record_errors = record_errors
        self.error_message = error_message
        self.current_leader = current_leader


def encode_produce(
    version: int,
    topics: Sequence[tuple[ProduceTopic, Sequence[PartitionResult]]],
    throttle_time_ms: int = 0,
    node_endpoints: Sequence[NodeEndpoint] = (),
) -> bytes:
    """Encode a response's body.

    `node_endpoints` (from version 10) are those of the leaders in the results.
    """
    if version < FIRST_FLEXIBLE:
        return _encode_classic(version, topics, throttle_time_ms)
    pieces: list[bytes] = [uvarint(len(topics) + 1)]
    for topic, results in topics:
        if version >= FIRST_TOPIC_ID:
            pieces.append(topic.topic_id)
        else:
            pieces.append(compact_string(topic.name))
        pieces.append(uvarint(len(results) + 1))
        for result in results:
            if (
                result.record_errors
                or result.error_message is not None
                or result.current_leader is not None
            ):
                pieces.append(_encode_fault(version, result))
            else:
                pieces.append(
                    _PLAIN_V9.pack(
                        result.index,
                        result.error_code,
                        result.base_offset,
                        result.log_append_time_ms,
                        result.log_start_offset,
                        1,
                    )
                )
        pieces.append(b"\x00")
    pieces.append(_INT32.pack(throttle_time_ms))
    if node_endpoints and version >= 10:
        pieces.append(encode_node_endpoints(node_endpoints))
    else:
        pieces.append(b"\x00")
    return b"".join(pieces)


def _encode_fault(version: int, result: PartitionResult) -> bytes:
    pieces = [
        _RESULT_V5.pack(
            result.index,
            result.error_code,
            result.base_offset,
            result.log_append_time_ms,
            result.log_start_offset,
        ),
        uvarint(len(result.record_errors) + 1),
    ]
    for batch_index, message in result.record_errors:
        pieces += (_INT32.pack(batch_index), compact_nullable_string(message), b"\x00")
    pieces.append(compact_nullable_string(result.error_message))
    if result.current_leader is not None and version >= 10:
        # Tag 0 of 9 bytes: two int32 and no nested tags.
        pieces += (b"\x01\x00\x09", _LEADER.pack(*result.current_leader), b"\x00")
    else:
        pieces.append(b"\x00")
    return b"".join(pieces)


def encode_node_endpoints(node_endpoints: Sequence[NodeEndpoint]) -> bytes:
    """Encode a response's tagged fields: the endpoints, tag 0."""
    pieces = [uvarint(len(node_endpoints) + 1)]
    for node_id, host, port, rack in node_endpoints:
        pieces += (
            _INT32.pack(node_id),
            compact_string(host),
            _INT32.pack(port),
            compact_nullable_string(rack),
            b"\x00",
        )
    array = b"".join(pieces)
    return b"\x01\x00" + uvarint(len(array)) + array


def _encode_classic(
    version: int,
    topics: Sequence[tuple[ProduceTopic, Sequence[PartitionResult]]],
    throttle_time_ms: int,
) -> bytes:
    pieces: list[bytes] = [_INT32.pack(len(topics))]
    for topic, results in topics:
        pieces += (string(topic.name), _INT32.pack(len(results)))
        for result in results:
            fields = (
                result.index,
                result.error_code,
                result.base_offset,
                result.log_append_time_ms,
            )
            if version < 5:
                pieces.append(_RESULT_V3.pack(*fields))
            elif version < 8:
                pieces.append(_RESULT_V5.pack(*fields, result.log_start_offset))
            elif result.record_errors or result.error_message is not None:
                pieces.append(_RESULT_V5.pack(*fields, result.log_start_offset))
                pieces.append(_INT32.pack(len(result.record_errors)))
                for batch_index, message in result.record_errors:
                    pieces += (_INT32.pack(batch_index), nullable_string(message))
                pieces.append(nullable_string(result.error_message))
            else:
                pieces.append(_PLAIN_V8.pack(*fields, result.log_start_offset, 0, -1))
    pieces.append(_INT32.pack(throttle_time_ms))
    return b"".join(pieces)
