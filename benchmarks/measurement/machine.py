"""The machine's state: CPU of processes, listeners, other load."""

from __future__ import annotations

import os
import platform
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_LISTENING = "0A"


def cpu_seconds(process_id: int) -> float:
    """Return a process's CPU time in nanosecond resolution, including ended threads.

    Source: clock_getcpuclockid(3): the clock's number is derived from the process's.
    """
    return time.clock_gettime((~process_id << 3) | 2)


class TickedTimes(NamedTuple):
    """CPU seconds of a process and its reaped children, in ticks of 10 ms."""

    user_s: float
    kernel_s: float
    childrens_user_s: float
    childrens_kernel_s: float

    @classmethod
    def of(cls, process_id: int) -> TickedTimes:
        """Source: proc(5), utime to cstime."""
        fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
        return cls(*(int(field) / _TICKS_PER_S for field in fields[11:15]))


def resident_mb(process_id: int) -> float:
    return _memory_mb(process_id, "VmRSS")


def peak_mb(process_id: int) -> float:
    """Return the most resident memory since the start or `reset_peak`."""
    return _memory_mb(process_id, "VmHWM")


def reset_peak(process_id: int) -> None:
    Path(f"/proc/{process_id}/clear_refs").write_text("5")


def _memory_mb(process_id: int, field: str) -> float:
    status = Path(f"/proc/{process_id}/status").read_text()
    match = re.search(rf"{field}:\s+(\d+) kB", status)
    assert match is not None
    return int(match[1]) / 1024


def listens(process_id: int, port: int) -> bool:
    """Return whether this process, not an earlier one, listens at a port."""
    sockets = set[str]()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == _LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                sockets.add(f"socket:[{fields[9]}]")
    for descriptor in Path(f"/proc/{process_id}/fd").iterdir():
        try:
            if str(descriptor.readlink()) in sockets:
                return True
        except FileNotFoundError:
            continue  # closed
    return False


def describe() -> str:
    model = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    memory = re.search(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text())
    assert memory is not None
    return (
        f"{model[1] if model else platform.machine()}, {os.cpu_count()} cores, "
        f"{int(memory[1]) / 2**20:.0f} GiB, {platform.system()} {platform.release()}, "
        f"load {os.getloadavg()[0]:.1f}"
    )


@dataclass(frozen=True)
class CpuTimes:
    """The machine's CPU seconds, summed over all cores."""

    busy_s: float  # of this machine's processes
    stolen_s: float  # by the host

    @classmethod
    def now(cls) -> CpuTimes:
        line = Path("/proc/stat").read_text().partition("\n")[0].split()[1:]
        user, nice, system, _idle, _wait, interrupt, soft, steal = (
            int(field) for field in line[:8]
        )
        busy = user + nice + system + interrupt + soft
        return cls(busy / _TICKS_PER_S, steal / _TICKS_PER_S)


class Witness:
    """Measurement of the CPU that neither the broker nor its generator used.

    After `with Witness(*broker_pids) as witness: …`, `foreign_share` is the share of others.
    Generators are children of this process that end within the block.
    """

    def __init__(self, *brokers: int) -> None:
        self._brokers = brokers
        self.broker_cpu_s = 0.0
        self.seconds = 0.0
        self.foreign_share = 0.0

    def __enter__(self) -> Witness:
        self._machine = CpuTimes.now()
        self._own = _own_cpu_s()
        self._cpu = sum(map(cpu_seconds, self._brokers))
        self._began = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.monotonic() - self._began
        self.broker_cpu_s = sum(map(cpu_seconds, self._brokers)) - self._cpu
        machine = CpuTimes.now()
        other_cpu_s = machine.busy_s - self._machine.busy_s - self.broker_cpu_s
        other_cpu_s -= _own_cpu_s() - self._own
        lost = max(0.0, other_cpu_s) + machine.stolen_s - self._machine.stolen_s
        self.foreign_share = lost / (self.seconds * (os.cpu_count() or 1))


def _own_cpu_s() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
