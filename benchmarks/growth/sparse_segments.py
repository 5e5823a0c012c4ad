"""Sparse segments of 1 GiB with a batch at each end, for starts and look-ups only.

They have index entries and clean-stop files, so that nothing is recovered.
"""

from __future__ import annotations

from pathlib import Path

from wirebroker.codecs.records.batch import build_batch
from wirebroker.storage.checkpoints import RECOVERY_POINT_CHECKPOINT, read_offsets, write_offsets
from wirebroker.storage.files import Files
from wirebroker.storage.log.index.offset_index import OFFSET_ENTRY
from wirebroker.storage.log.index.time_index import TIME_ENTRY
from wirebroker.storage.log.producers.producer_snapshot import encode_snapshot, snapshot_name
from wirebroker.storage.log.segment.segment_files import segment_path

SEGMENT_BYTES = 1 << 30
# Of a segment; only the first and the last have records.
OFFSETS = 1_000
STEP_MS = 1_000


def last_offset(segment: int) -> int:
    return segment * OFFSETS + OFFSETS - 1


def last_timestamp(segment: int, start_ms: int) -> int:
    return start_ms + (segment + 1) * STEP_MS


def write_segments(data_dir: Path, topic: str, count: int, *, start_ms: int) -> None:
    """Replace the content of a topic's partition 0 by `count` segments; the last is active.

    The broker must have stopped cleanly. `start_ms` is the first record's timestamp.
    """
    directory = data_dir / f"{topic}-0"
    for path in directory.iterdir():
        if path.name != "partition.metadata":
            path.unlink()
    for segment in range(count):
        _write_segment(directory, segment, start_ms)
    end_offset = last_offset(count - 1) + 1
    (directory / snapshot_name(end_offset)).write_bytes(encode_snapshot([]))
    (directory / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    files = Files()
    checkpoint = str(data_dir / RECOVERY_POINT_CHECKPOINT)
    write_offsets(files, checkpoint, {**read_offsets(files, checkpoint), (topic, 0): end_offset})


def _write_segment(directory: Path, segment: int, start_ms: int) -> None:
    base_offset = segment * OFFSETS
    end_ms = last_timestamp(segment, start_ms)
    first = _batch(base_offset, end_ms - STEP_MS + 1)
    last = _batch(last_offset(segment), end_ms)
    position = SEGMENT_BYTES - len(last)
    with _file(directory, base_offset, ".log").open("wb") as log:
        log.write(first)
        log.seek(position)
        log.write(last)
    with _file(directory, base_offset, ".index").open("wb") as index:
        index.write(OFFSET_ENTRY.pack(OFFSETS - 1, position))
    with _file(directory, base_offset, ".timeindex").open("wb") as index:
        index.write(TIME_ENTRY.pack(end_ms, OFFSETS - 1))


def _file(directory: Path, base_offset: int, suffix: str) -> Path:
    return Path(segment_path(str(directory), base_offset, suffix))


def _batch(offset: int, timestamp_ms: int) -> bytes:
    return bytes(
        build_batch(
            [(None, b"x" * 100, ())], base_offset=offset, leader_epoch=0, timestamp_ms=timestamp_ms
        )
    )
