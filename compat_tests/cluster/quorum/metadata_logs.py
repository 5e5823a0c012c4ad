"""The metadata logs of voters: equal bytes at equal offsets, and readable by Kafka's tool."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from tests.support.brokers import java_start
from tests.support.brokers.brokers import java_tool
from wirebroker.codecs.records.batch import read_batch_header

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_FOLDER = "__cluster_metadata-0"
_TOOL = "org.apache.kafka.tools.DumpLogSegments"


def segments(data_dir: Path) -> list[Path]:
    """Return the segments of a voter's metadata log, oldest first."""
    return sorted((data_dir / _FOLDER).glob("*.log"))


def batches(data_dir: Path) -> dict[int, bytes]:
    """Return the batches of a voter's log by their first offsets."""
    found: dict[int, bytes] = {}
    for segment in segments(data_dir):
        view = memoryview(segment.read_bytes())
        position = 0
        while len(view) - position >= 61:
            header = read_batch_header(view, position)
            if header.size <= 0 or position + header.size > len(view):
                break
            found[header.base_offset] = bytes(view[position : position + header.size])
            position += header.size
    return found


def compared(data_dirs: Iterable[Path], high_watermark: int) -> tuple[int, list[str]]:
    """Compare the logs of all voters below the high watermark.

    Returns:
        The number of batches that all have, and a line for each difference.
    """
    logs = {data_dir: batches(data_dir) for data_dir in data_dirs}
    starts = [min(log) for log in logs.values()]
    first = max(starts)
    offsets = sorted(
        {offset for log in logs.values() for offset in log if first <= offset < high_watermark}
    )
    different: list[str] = []
    for offset in offsets:
        contents = {data_dir.parent.name: log.get(offset) for data_dir, log in logs.items()}
        if len(set(contents.values())) != 1:
            shown = {name: content and content[:80].hex() for name, content in contents.items()}
            different.append(f"offset {offset}: {shown}")
    return len(offsets), different


def dumped(data_dir: Path) -> str:
    """Return what kafka-dump-log prints of a voter's log; fail if it cannot read it."""
    files = ",".join(str(segment) for segment in segments(data_dir))
    command = java_tool("-Xmx256m", _TOOL, java_start.options())
    command += ["--cluster-metadata-decoder", "--files", files]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    output = done.stdout + done.stderr
    assert done.returncode == 0, output[-2000:]
    for problem in ("isvalid: false", "Found record size", "Exception", "unparseable"):
        assert problem not in output, output[-2000:]
    return done.stdout
