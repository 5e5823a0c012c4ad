"""Facts of this process from /proc; read in a thread.

The names are those of Prometheus's client libraries.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final, NamedTuple

from wirebroker.base.metric_field import Kind
from wirebroker.metrics.rows import ShownRow

_PROC: Final = Path("/proc/self")


class ProcessFacts(NamedTuple):
    """CPU time includes system mode; I/O bytes are those of disks."""

    cpu_s: float
    resident_bytes: int
    virtual_bytes: int
    open_fds: int
    max_fds: int | None
    read_bytes: int | None
    written_bytes: int | None
    threads: int


PROCESS_ROWS: Final[tuple[ShownRow[ProcessFacts], ...]] = (
    ShownRow(
        "CPU time used, in seconds.",
        lambda facts: facts.cpu_s,
        Kind.COUNTER,
        own="process_cpu_seconds_total",
    ),
    ShownRow(
        "Memory in use, in bytes.",
        lambda facts: facts.resident_bytes,
        own="process_resident_memory_bytes",
    ),
    ShownRow(
        "Address space, in bytes.",
        lambda facts: facts.virtual_bytes,
        own="process_virtual_memory_bytes",
    ),
    ShownRow("Open descriptors.", lambda facts: facts.open_fds, own="process_open_fds"),
    ShownRow(
        "Maximum number of open descriptors.", lambda facts: facts.max_fds, own="process_max_fds"
    ),
    ShownRow("Threads.", lambda facts: facts.threads, own="process_threads"),
    ShownRow(
        "Bytes that this process caused to be read from disk.",
        lambda facts: facts.read_bytes,
        jmx="kafka_server_kafkaserver_linux_disk_read_bytes",
    ),
    ShownRow(
        "Bytes that this process caused to be written to disk.",
        lambda facts: facts.written_bytes,
        jmx="kafka_server_kafkaserver_linux_disk_write_bytes",
    ),
)


def read_process_facts() -> ProcessFacts | None:
    """Return the current facts; None without /proc."""
    try:
        open_fds = len(os.listdir(_PROC / "fd"))  # noqa: PTH208 - 30,000 paths would take a second
        status = _numbers((_PROC / "status").read_text())
        limits = (_PROC / "limits").read_text()
    except OSError:
        return None
    times = os.times()
    disk = _disk_numbers()
    return ProcessFacts(
        cpu_s=times.user + times.system,
        resident_bytes=status["VmRSS"] * 1024,
        virtual_bytes=status["VmSize"] * 1024,
        open_fds=open_fds,
        max_fds=_max_open_files(limits),
        read_bytes=disk.get("read_bytes"),
        written_bytes=disk.get("write_bytes"),
        threads=status["Threads"],
    )


def _disk_numbers() -> dict[str, int]:
    try:
        return _numbers((_PROC / "io").read_text())
    except OSError:
        return {}


def _numbers(text: str) -> dict[str, int]:
    """Return the `name: number` lines of a text, with or without `kB`."""
    pairs = (line.removesuffix(" kB").partition(":") for line in text.splitlines())
    return {name: int(value) for name, _, value in pairs if value.strip().isdigit()}


def _max_open_files(limits: str) -> int | None:
    match = re.search(r"^Max open files +([0-9]+)", limits, re.MULTILINE)
    return None if match is None else int(match.group(1))
