"""A batch in another codec: what a topic's own `compression.type` makes of a producer's batch.

The header stays but for length, codec and CRC; the records are walked, because a batch that this
broker compresses is one it vouches for. Offsets inside must count 0, 1, 2 …, else they are
numbered anew. Source: Kafka's LogValidator, BrokerCompressionType.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.codecs.compression import Codec, compress, decompress
from wirebroker.codecs.record_batch import CODEC_MASK, HEADER_BYTES, OVERHEAD_BYTES, write_crc
from wirebroker.codecs.records import encode_record, read_records

if TYPE_CHECKING:
    from wirebroker.codecs.record_batch import BatchHeader
    from wirebroker.config_topic import TopicSettings

# 128 MiB: more than a hundred times max.message.bytes by default. Kafka has no such bound; a
# batch that inflates further than this is an attack or a mistake.
MAX_DECOMPRESSED_BYTES: Final = 128 << 20

_LENGTH: Final = Struct(">i")
_ATTRIBUTES: Final = Struct(">h")
_CODECS: Final = {
    "uncompressed": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}


class Compression(NamedTuple):
    """A codec and its level (None where the codec has none)."""

    codec: Codec
    level: int | None

    @classmethod
    def of(cls, settings: TopicSettings) -> Compression | None:
        """Return what the topic asks for, None for `producer`: as it came."""
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


def recompress(batch: memoryview, header: BatchHeader, target: Compression) -> memoryview:
    """Return the batch in the target's codec, as new, writable bytes.

    Raises:
        KafkaError: The records contradict the header or don't decompress (INVALID_RECORD,
            CORRUPT_MESSAGE).
    """
    payload = decompress(
        header.codec, batch[HEADER_BYTES : header.size], max_bytes=MAX_DECOMPRESSED_BYTES
    )
    payload = _with_dense_offsets(payload, header)
    packed = compress(target.codec, payload, target.level)
    result = bytearray(batch[:HEADER_BYTES])
    result += packed
    _LENGTH.pack_into(result, 8, len(result) - OVERHEAD_BYTES)
    _ATTRIBUTES.pack_into(result, 21, header.attributes & ~CODEC_MASK | target.codec)
    write_crc(result, 0)
    return memoryview(result)


def _with_dense_offsets(payload: bytes, header: BatchHeader) -> bytes:
    """Check every record, and number them anew if they don't count from 0 without gaps."""
    records = list(
        read_records(
            payload,
            count=header.record_count,
            base_offset=0,
            base_timestamp=header.base_timestamp,
            append_time=None,
        )
    )
    if all(record.offset == index for index, record in enumerate(records)):
        return payload
    return b"".join(
        encode_record(
            record.key,
            record.value,
            record.headers,
            offset_delta=index,
            timestamp_delta=record.timestamp - header.base_timestamp,
        )
        for index, record in enumerate(records)
    )
