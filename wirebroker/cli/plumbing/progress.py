"""Progress of long work on standard error."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from wirebroker.base.clock import Clock

_INTERVAL_S = 0.2
_ERASE_LINE = "\r\x1b[K"


class Progress:
    """Counts bytes and shows them in a line, at most five times a second, if there is a stream."""

    __slots__ = ("_clock", "_done", "_is_shown", "_next", "_started", "_stream", "_total")

    def __init__(self, stream: TextIO | None, total_bytes: int, clock: Clock) -> None:
        self._stream = stream
        self._total = total_bytes
        self._clock = clock
        self._done = 0
        self._started = clock.monotonic()
        self._next = self._started + _INTERVAL_S
        self._is_shown = False

    def add(self, count: int) -> None:
        """Count completed bytes."""
        self._done += count
        if self._stream is not None:
            now = self._clock.monotonic()
            if now >= self._next:
                self._next = now + _INTERVAL_S
                self._show(now)

    def clear(self) -> None:
        """Erase the line."""
        if self._is_shown and self._stream is not None:
            self._stream.write(_ERASE_LINE)
            self._stream.flush()
            self._is_shown = False

    def _show(self, now: float) -> None:
        assert self._stream is not None
        rate = self._done / max(now - self._started, 1e-9) / 1e6
        share = 100 * self._done / max(self._total, self._done, 1)
        done, total = self._done / 1e6, max(self._total, self._done) / 1e6
        text = f"{share:3.0f} %  {done:,.0f} of {total:,.0f} MB  {rate:,.0f} MB/s"
        self._stream.write(f"{_ERASE_LINE}{text}")
        self._stream.flush()
        self._is_shown = True
