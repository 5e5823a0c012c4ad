"""Recompression of a producer's batch into the codec of the topic's `compression.type`.

Of the attributes only the transactional bit is kept, as in Kafka. All slow steps release the GIL.

Source: Kafka's LogValidator, BrokerCompressionType.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, write_crc
from wirebroker.codecs.records.codec import CODECS, Codec
from wirebroker.codecs.records.compression import packer, unpack
from wirebroker.codecs.records.layout import (
    ATTRIBUTES,
    ATTRIBUTES_AT,
    HEADER_BYTES,
    LENGTH,
    LENGTH_AT,
    OVERHEAD_BYTES,
    TRANSACTIONAL_FLAG,
)
from wirebroker.storage.log.validation.batch_shape import RefusedBatchError

if TYPE_CHECKING:
    from wirebroker.codecs.records.batch import BatchHeader
    from wirebroker.config.rows.topic import TopicSettings

# By the values of the topic config compression.type.
_CODECS: Final = {
    "uncompressed" if codec is Codec.NONE else name: codec for name, codec in CODECS.items()
}


class Compression(NamedTuple):
    """A codec and its level, if it has one."""

    codec: Codec
    level: int | None

    @classmethod
    def of(cls, settings: TopicSettings) -> Compression | None:
        """Return the topic's codec; None for `producer`."""
        codec = _CODECS.get(settings.compression_type)
        if codec is None:
            assert settings.compression_type == "producer", settings.compression_type
            return None
        levels = {
            Codec.GZIP: settings.compression_gzip_level,
            Codec.LZ4: settings.compression_lz4_level,
            Codec.ZSTD: settings.compression_zstd_level,
        }
        return cls(codec, levels.get(codec))


def recompress(
    batch: memoryview,
    header: BatchHeader,
    target: Compression,
    *,
    unpacked_bytes: int,
    max_bytes: int,
) -> memoryview:
    """Return a validated batch in the target's codec, as new bytes.

    Raises:
        RefusedBatchError: MESSAGE_TOO_LARGE; or UNKNOWN_SERVER_ERROR for a producer id without
            epoch or sequence, with which Kafka cannot build a batch.
    """
    if header.producer_id != NO_PRODUCER_ID and (
        header.producer_epoch == NO_PRODUCER_EPOCH or header.base_sequence < 0
    ):
        raise RefusedBatchError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"producer {header.producer_id} has no epoch or no sequence",
        )
    result = bytearray(batch[:HEADER_BYTES])
    packing = packer(target.codec, target.level, size=unpacked_bytes)
    for piece in unpack(header.codec, batch[HEADER_BYTES : header.size], max_bytes=unpacked_bytes):
        result += packing.compress(piece)
        _check_size(result, max_bytes)
    result += packing.flush()
    _check_size(result, max_bytes)
    LENGTH.pack_into(result, LENGTH_AT, len(result) - OVERHEAD_BYTES)
    attributes = header.attributes & TRANSACTIONAL_FLAG | target.codec
    ATTRIBUTES.pack_into(result, ATTRIBUTES_AT, attributes)
    write_crc(result, 0)
    return memoryview(result)


def _check_size(result: bytearray, max_bytes: int) -> None:
    if len(result) > max_bytes:
        raise RefusedBatchError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"the recompressed batch has {len(result)} bytes or more, max.message.bytes is"
            f" {max_bytes}",
        )
