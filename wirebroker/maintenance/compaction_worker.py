"""Compaction in a separate process, because it would block the broker's event loop.

    in    one JSON object and a newline: the job and its limits
    out   one JSON object a line:
          {"read": bytes}                                        progress, every second
          {"group": base offsets, "before": b, "after": b}       a `.cleaned` segment is on disk
          {"done": next dirty offset}                            the end
          {"error": "corrupt" or "disk", "errno": n or null, "text": sentence}       the end

It runs at the lowest priority and ends when the broker has ended.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import sys
import time
from typing import TYPE_CHECKING, Any, Final

from wirebroker.codecs.errors import KafkaError
from wirebroker.maintenance.compaction_order import decode_order
from wirebroker.storage.compaction.compaction import Compaction, count_dirty_records
from wirebroker.storage.compaction.map import OffsetMap
from wirebroker.storage.files import Files

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.maintenance.compaction_order import Limits
    from wirebroker.storage.compaction.compaction import CompactionJob

    Send = Callable[[dict[str, Any]], None]

_LOWEST_PRIORITY: Final = 19
_SET_DEATH_SIGNAL: Final = 1  # PR_SET_PDEATHSIG in linux/prctl.h
_REPORT_S: Final = 1.0
# Between two time checks: 1 ms of work.
_STEP_BYTES: Final = 64 * 1024


class BrokerGoneError(Exception):
    """The broker has ended."""


class _Pace:
    """A rate limiter that also reports progress and checks that the broker is alive."""

    def __init__(self, send: Send, limits: Limits, broker: int) -> None:
        self._send = send
        self._bytes_per_second = limits.bytes_per_second
        self._broker = broker
        self._started = self._reported = time.monotonic()
        self._bytes = self._step = 0

    def note(self, count: int) -> None:
        self._step += count
        if self._step < _STEP_BYTES:
            return
        self._bytes += self._step
        self._step = 0
        now = time.monotonic()
        ahead_s = self._bytes / self._bytes_per_second - (now - self._started)
        while True:
            if os.getppid() != self._broker:
                raise BrokerGoneError
            if now - self._reported >= _REPORT_S:
                self._reported = now
                self._send({"read": self._bytes})
            if ahead_s <= 0:
                return
            sleep_s = min(ahead_s, _REPORT_S)
            time.sleep(sleep_s)  # the rate limit; the process does nothing else
            ahead_s -= sleep_s
            now = time.monotonic()


def work(job: CompactionJob, limits: Limits, broker: int, send: Send) -> None:
    """Compact, and send the results."""
    pace = _Pace(send, limits, broker)
    files = Files()
    try:
        offset_map = OffsetMap(
            limits.map_bytes,
            load_factor=limits.load_factor,
            secret=os.urandom(16),
            key_count=count_dirty_records(job, files),
        )
        compaction = Compaction(job, files, offset_map, on_read=pace.note)
        for group in compaction.run():
            pace.note(group.bytes_after)
            send(
                {
                    "group": group.base_offsets,
                    "before": group.bytes_before,
                    "after": group.bytes_after,
                }
            )
    except KafkaError as error:
        send({"error": "corrupt", "errno": None, "text": str(error)})
    except OSError as error:
        send({"error": "disk", "errno": error.errno, "text": str(error)})
    else:
        send({"done": compaction.next_dirty_offset})


def die_with_parent() -> None:
    """Make the kernel kill this process when the broker dies (Linux only).

    Otherwise the next broker could find files that its own workers did not write.
    """
    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)


def main() -> None:
    """Read a job from stdin and run it."""
    die_with_parent()
    if hasattr(os, "nice"):
        os.nice(_LOWEST_PRIORITY)
    job, limits, broker = decode_order(sys.stdin.buffer.readline())
    if os.getppid() != broker:
        return

    def send(message: dict[str, Any]) -> None:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()

    try:
        work(job, limits, broker, send)
    except (BrokerGoneError, BrokenPipeError):
        os._exit(1)  # avoids an error for the broken pipe


if __name__ == "__main__":
    main()
