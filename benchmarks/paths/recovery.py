"""The speed of log recovery after a crash: all batches are checked, both indexes rebuilt.

    python -m benchmarks.paths.recovery [--mib 512]

Prints MB/s for batches of 170 bytes, 16 KiB and 1 MiB, without and with a producer id; and the time
if all but the last MiB was flushed. Files are in the page cache.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from wirebroker.codecs.records.batch import build_batch, set_base_offset_and_epoch, write_crc
from wirebroker.config.rows.topic import TopicSettings
from wirebroker.storage.files import Files
from wirebroker.storage.log.log import Log
from wirebroker.storage.recovery.log_recovery import load_log

_NOW_MS = 1_700_000_000_000
_PRODUCER_EPOCH_END = 53
_MIB = 1 << 20


class _Shape(NamedTuple):
    name: str
    batch_bytes: int
    producer_id: int


_SHAPES = [
    _Shape(f"{name:>8} batches, {kind}", size, producer_id)
    for name, size in (("170 B", 170), ("16 KiB", 16 << 10), ("1 MiB", _MIB))
    for kind, producer_id in (("no producer id", -1), ("idempotent", 7))
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, default=512)
    size = parser.parse_args().mib * _MIB
    for shape in _SHAPES:
        with tempfile.TemporaryDirectory() as directory:
            end_offset, tail_start = _write(Path(directory), shape, size)
            whole_s = min(_load(directory, 0) for _ in range(2))
            tail_s = _load(directory, tail_start)
            written = (Path(directory) / f"{0:020d}.log").stat().st_size
        print(
            f"{shape.name:<32} {written / whole_s / 1e6:7.0f} MB/s, {end_offset / whole_s:9.0f} "
            f"batches/s; the last MiB alone {tail_s * 1000:6.0f} ms"
        )


def _write(directory: Path, shape: _Shape, size: int) -> tuple[int, int]:
    """Return the segment's end offset, and the offset where its last MiB begins."""
    log = _open(str(directory))
    load_log(log, recovery_point=0, clean=True, now_ms=_NOW_MS)
    value = bytes(shape.batch_bytes - 61 - 12)
    batch = build_batch(
        [(b"key", value, ())],
        timestamp_ms=_NOW_MS,
        producer_id=shape.producer_id,
        producer_epoch=-1 if shape.producer_id < 0 else 0,
        base_sequence=-1 if shape.producer_id < 0 else 0,
    )
    count = size // len(batch)
    per_write = max(1, _MIB // len(batch))
    for start in range(0, count, per_write):
        piece = bytearray()
        for offset in range(start, min(count, start + per_write)):
            if shape.producer_id >= 0:
                batch[_PRODUCER_EPOCH_END : _PRODUCER_EPOCH_END + 4] = offset.to_bytes(4)
                write_crc(batch, 0)
            set_base_offset_and_epoch(batch, 0, offset, 0)
            piece += batch
        log.append_as_follower(piece, now_ms=_NOW_MS)
    log.flush()
    log.close(clean=False)
    return count, max(0, count - per_write)


def _load(directory: str, recovery_point: int) -> float:
    for path in Path(directory).glob("*.snapshot"):
        path.unlink()
    log = _open(directory)
    before = time.perf_counter()
    load_log(log, recovery_point=recovery_point, clean=False, now_ms=_NOW_MS)
    taken_s = time.perf_counter() - before
    log.close(clean=False)
    return taken_s


def _open(directory: str) -> Log:
    settings = TopicSettings(segment_bytes=(1 << 31) - 1)
    files = Files()
    return Log(directory, files, topic="t", partition=0, topic_id=bytes(16), settings=settings)


if __name__ == "__main__":
    main()
