"""Every codec in every form that clients write, and decompression bombs."""

import gzip
import os
import struct
import sys
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import cramjam
import lz4.frame
import pytest
import zstandard

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.primitives import uvarint
from wirebroker.codecs.records.codec import Codec
from wirebroker.codecs.records.compression import compress, decompress, packer

PACKING = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]
LIMIT = 10_000_000
TEXT = b" ".join(b"word-%d" % (number % 97) for number in range(30_000))
PAYLOADS = [b"", b"x", b"abc" * 100, TEXT, os.urandom(100_000)]


def fault(codec: Codec, data: bytes, max_bytes: int = LIMIT) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        decompress(codec, data, max_bytes=max_bytes)
    return caught.value.code


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("payload", PAYLOADS, ids=len)
def test_payloads_round_trip(codec: Codec, payload: bytes) -> None:
    packed = compress(codec, memoryview(payload))
    assert decompress(codec, memoryview(packed), max_bytes=LIMIT) == payload
    assert decompress(codec, bytearray(packed), max_bytes=len(payload)) == payload


@pytest.mark.parametrize(
    ("codec", "levels"),
    [
        (Codec.GZIP, [-1, 1, 5, 9]),
        (Codec.LZ4, [1, 2, 3, 9, 12, 17]),
        (Codec.ZSTD, [-131072, -1, 0, 1, 3, 19, 22]),
    ],
)
def test_every_compression_level_of_kafka_configs_is_accepted(
    codec: Codec, levels: list[int]
) -> None:
    for level in levels:
        assert decompress(codec, compress(codec, TEXT, level), max_bytes=LIMIT) == TEXT


def test_a_level_has_an_effect() -> None:
    for codec, low, high in ((Codec.GZIP, 1, 9), (Codec.LZ4, 9, 12), (Codec.ZSTD, 1, 19)):
        assert len(compress(codec, TEXT, high)) < len(compress(codec, TEXT, low))


@pytest.mark.parametrize("codec", Codec)
def test_the_limit_is_exact(codec: Codec) -> None:
    packed = compress(codec, TEXT)
    assert decompress(codec, packed, max_bytes=len(TEXT)) == TEXT
    assert fault(codec, packed, len(TEXT) - 1) is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", PACKING)
def test_noise_is_corrupt(codec: Codec) -> None:
    for noise in (b"\xff" * 40, b"\x00" * 40, TEXT[:100]):
        assert fault(codec, noise) in {ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD}


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
def test_data_that_ends_early_is_corrupt(codec: Codec) -> None:
    packed = compress(codec, TEXT)
    for length in (len(packed) // 2, len(packed) - 1):
        assert fault(codec, packed[:length]) is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4])
def test_no_data_at_all_is_corrupt(codec: Codec) -> None:
    assert fault(codec, b"") is ErrorCode.CORRUPT_MESSAGE


def test_snappy_is_written_in_java_s_form() -> None:
    packed = compress(Codec.SNAPPY, b"x" * 40_000)
    assert packed[:16] == b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
    (first_length,) = struct.unpack_from(">i", packed, 16)
    # 32 KiB blocks.
    assert packed[20:23] == uvarint(32_768)
    assert packed[20 + first_length + 4 :].startswith(uvarint(40_000 - 32_768))


def test_raw_snappy_is_read() -> None:
    raw = bytes(cramjam.snappy.compress_raw(TEXT))
    assert decompress(Codec.SNAPPY, raw, max_bytes=LIMIT) == TEXT


def test_concatenated_snappy_streams_are_read() -> None:
    packed = compress(Codec.SNAPPY, b"one") + compress(Codec.SNAPPY, b"two")
    assert decompress(Codec.SNAPPY, packed, max_bytes=LIMIT) == b"onetwo"


@pytest.mark.parametrize(
    "blocks", [b"\x00", b"\x00\x00\x00\x05abc", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff" + bytes(9)]
)
def test_a_snappy_block_that_ends_beyond_the_data_is_corrupt(blocks: bytes) -> None:
    header = compress(Codec.SNAPPY, b"")
    assert fault(Codec.SNAPPY, header + blocks) is ErrorCode.CORRUPT_MESSAGE


def test_java_s_lz4_frame_is_written() -> None:
    packed = compress(Codec.LZ4, TEXT)
    # Magic; version 1, independent blocks, no checksums, no size; 64 KiB blocks; header checksum.
    assert packed[:7] == bytes.fromhex("04224d18604082")


@pytest.mark.parametrize("linked", [True, False])
@pytest.mark.parametrize("checksum", [True, False])
def test_other_lz4_frames_are_read(linked: bool, checksum: bool) -> None:
    packed = lz4.frame.compress(
        TEXT,
        block_linked=linked,
        content_checksum=checksum,
        block_checksum=checksum,
        store_size=checksum,
        block_size=lz4.frame.BLOCKSIZE_MAX4MB,
    )
    assert decompress(Codec.LZ4, packed, max_bytes=LIMIT) == TEXT


def test_a_wrong_lz4_checksum_is_corrupt() -> None:
    packed = bytearray(lz4.frame.compress(TEXT, content_checksum=True))
    packed[-1] ^= 1
    assert fault(Codec.LZ4, bytes(packed)) is ErrorCode.CORRUPT_MESSAGE
    assert fault(Codec.LZ4, compress(Codec.LZ4, TEXT) + b"?") is ErrorCode.INVALID_RECORD


def test_zstd_frames_without_content_size_are_read() -> None:
    compressor = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    packed = compressor.compress(TEXT) + compressor.flush()
    assert zstandard.frame_content_size(packed) == -1
    assert decompress(Codec.ZSTD, packed, max_bytes=len(TEXT)) == TEXT
    assert fault(Codec.ZSTD, packed, len(TEXT) - 1) is ErrorCode.INVALID_RECORD


def test_concatenated_gzip_members_and_zstd_frames_are_read() -> None:
    for codec in (Codec.GZIP, Codec.ZSTD):
        packed = compress(codec, b"one") + compress(codec, b"two")
        assert decompress(codec, packed, max_bytes=6) == b"onetwo"
        assert fault(codec, packed, 5) is ErrorCode.INVALID_RECORD


def test_thousands_of_empty_gzip_members_are_refused() -> None:
    assert fault(Codec.GZIP, gzip.compress(b"") * 5000) is ErrorCode.CORRUPT_MESSAGE


SIZE = 300_000_000
# One block of 128 KiB of the same byte is four bytes: 0x02 | size << 3 says "repeat".
REPEAT = struct.pack("<I", (128 * 1024 << 3) | 2)[:3] + b"A"
LAST = struct.pack("<I", (128 * 1024 << 3) | 3)[:3] + b"A"


def gzip_bomb() -> bytes:
    deflater = zlib.compressobj(9, zlib.DEFLATED, 31)
    zeros = bytes(1_000_000)
    bomb = b"".join(deflater.compress(zeros) for _ in range(SIZE // len(zeros)))
    return bomb + deflater.flush()


def xerial_bomb() -> bytes:
    start = compress(Codec.SNAPPY, b"")
    return start + struct.pack(">i", 24) + uvarint(SIZE) + bytes(20)


def lz4_of_a_size() -> bytes:
    context = lz4.frame.create_compression_context()
    return lz4.frame.compress_begin(context, source_size=SIZE) + bytes(20)


# Small inputs that inflate, or claim to, to hundreds of megabytes. They are created on first use,
# because that takes seconds and every process collects the tests.
BOMBS: dict[str, tuple[Codec, Callable[[], bytes]]] = {
    "gzip": (Codec.GZIP, gzip_bomb),
    "snappy says 300 MB": (Codec.SNAPPY, lambda: uvarint(SIZE) + bytes(20)),
    "snappy says 4 GB": (Codec.SNAPPY, lambda: uvarint(2**32 - 1) + bytes(20)),
    "xerial says 300 MB": (Codec.SNAPPY, xerial_bomb),
    "lz4": (Codec.LZ4, lambda: lz4.frame.compress(bytes(SIZE // 3))),
    "lz4 says 300 MB": (Codec.LZ4, lz4_of_a_size),
    "zstd": (Codec.ZSTD, lambda: zstandard.ZstdCompressor().compress(bytes(SIZE // 3))),
    "zstd without size": (
        Codec.ZSTD,
        lambda: b"\x28\xb5\x2f\xfd\x00\x58" + REPEAT * (SIZE // (128 * 1024)) + LAST,
    ),
    "zstd says 2 GB": (Codec.ZSTD, lambda: b"\x28\xb5\x2f\xfd\xa0\x00\x00\x00\x80" + LAST),
    "zstd with a window of 2 GB": (Codec.ZSTD, lambda: b"\x28\xb5\x2f\xfd\x00\xa8" + LAST),
}


def peak_kib() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def growth_kib(work: Callable[..., Any], *arguments: object) -> tuple[Any, int]:
    """Return a call's result and its growth of the peak memory."""
    Path("/proc/self/clear_refs").write_text("5")
    before = peak_kib()
    result = work(*arguments)
    return result, peak_kib() - before


def bomb_growth_kib(name: str, max_bytes: int) -> tuple[ErrorCode, int]:
    codec, make = BOMBS[name]
    data = make()
    # Import the libraries and build their tables before memory is measured.
    fault(codec, b"\xff" * 20)
    return growth_kib(fault, codec, data, max_bytes)


@pytest.fixture(scope="module")
def own_process() -> Iterator[ProcessPoolExecutor]:
    """A process without garbage of other tests."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        yield process


def test_the_peak_of_memory_is_measured(own_process: ProcessPoolExecutor) -> None:
    data, growth = own_process.submit(growth_kib, bytes.__mul__, b"x", 50_000_000).result()
    assert len(data) == 50_000_000
    assert growth > 40_000


@pytest.mark.parametrize("name", BOMBS)
def test_decompression_bomb_is_refused_without_allocating(
    name: str, own_process: ProcessPoolExecutor
) -> None:
    code, growth = own_process.submit(bomb_growth_kib, name, 1 << 20).result()
    assert code in {ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE}
    assert growth < 16 * 1024


@pytest.mark.parametrize("name", ["snappy says 300 MB", "lz4 says 300 MB", "zstd says 2 GB"])
def test_declared_size_is_not_trusted_even_within_the_limit(
    name: str, own_process: ProcessPoolExecutor
) -> None:
    code, growth = own_process.submit(bomb_growth_kib, name, sys.maxsize >> 32).result()
    assert code is ErrorCode.CORRUPT_MESSAGE
    assert growth < 16 * 1024


def test_zstd_highest_level_uses_small_window_for_large_data():
    """Zstd's own tables for 100 MiB take 800 MiB of memory, and any topic may configure it."""
    packing = packer(Codec.ZSTD, 22, size=100 << 20)
    head = packing.compress(bytes(100 << 20))[:18]
    assert zstandard.get_frame_parameters(head).window_size <= 2 << 20


@pytest.mark.parametrize("level", [-5, 3, 22])
@pytest.mark.parametrize("size", [0, 1, 1000, 1 << 20])
def test_zstd_compresses_smaller_data_as_by_default(level, size):
    data = (os.urandom(997) * (size // 997 + 1))[:size]
    alone = zstandard.ZstdCompressor(level=level).compressobj(size=size)
    assert compress(Codec.ZSTD, data, level) == alone.compress(data) + alone.flush()
