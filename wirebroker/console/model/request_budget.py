"""A bound on the time that a console costs the brokers.

The time from a request to its response, without that of the network, is at least the broker's work
for it. So a broker works for the console at most `share` of the time if the pauses between requests
are long enough:

    pause after a request of t seconds  =  t / share - t
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from wirebroker.base.clock import Clock

# Of the time of one core of a broker; the rest of the 3 % is for details that pages read.
SHARE: Final = 0.025
# A single slow response does not stop the console for longer.
_MOST_PAUSE_S: Final = 60.0


class RequestBudget:
    """When the next requests may be sent."""

    __slots__ = ("_clock", "_free_at", "_share")

    def __init__(self, clock: Clock, share: float = SHARE) -> None:
        self._clock = clock
        self._share = share
        self._free_at = clock.monotonic()

    def spend(self, seconds: float) -> None:
        """Note that the busiest broker worked for some seconds until now."""
        pause_s = min(_MOST_PAUSE_S, seconds / self._share - seconds)
        self._free_at = max(self._free_at, self._clock.monotonic()) + pause_s

    @property
    def pause_s(self) -> float:
        """Seconds until the next request may be sent."""
        return max(0.0, self._free_at - self._clock.monotonic())
