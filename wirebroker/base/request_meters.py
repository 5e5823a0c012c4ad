"""Times of requests by phase, their sizes, and the error codes of their responses.

    total = queue + local + remote + send

    queue    from the arrival of the request's bytes to the call of its handler
    local    until the handler returns a response or a pending one
    remote   until the response is ready: waits for records, followers, members, the controller
    send     until the socket has taken all of a response that it did not take immediately

Most responses are ready when the handler returns; `served` then counts one value, the local time.
Each phase of other (slow) requests is counted.

Source: Kafka's RequestMetrics and RequestChannel.
"""

from __future__ import annotations

import time
from collections import Counter
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from wirebroker.base.integer_histogram import SLOTS, IntegerHistogram, new_slots

try:
    from wirebroker.base import _histogram
except ImportError:  # not compiled
    _histogram = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Callable

# Shorter queue times count as 0: serving other sockets does not make a request slow.
_NOTICED_QUEUE_S: Final = 0.000_25
_US: Final = 1_000_000.0

# For durations that are only displayed; other code uses a Clock.
STOPWATCH: Final = time.perf_counter

# A module attribute costs 40 ns per access.
_COUNT_REQUEST: Final[Any] = None if _histogram is None else _histogram.count_request
_COUNT_SLOW: Final[Any] = None if _histogram is None else _histogram.count_slow
_COUNT_SENT: Final[Any] = None if _histogram is None else _histogram.count_sent

# As in Kafka, fetches of consumers and followers have separate meters.
FETCH_NAMES: Final = ("FetchConsumer", "FetchFollower")


class Phase(Enum):
    """Part of a request's time, by its name in Kafka's metrics."""

    TOTAL = "totaltimems"
    QUEUE = "requestqueuetimems"
    LOCAL = "localtimems"
    REMOTE = "remotetimems"
    SEND = "responsesendtimems"


class _SlowPhases:
    """Histograms of an API's slow requests, in the order of `_histogram.c`."""

    __slots__ = ("local", "queue", "remote", "send", "slots", "totals")

    def __init__(self) -> None:
        count = 5
        self.slots = new_slots(count)
        ends = range(SLOTS, count * SLOTS + 1, SLOTS)
        parts = [IntegerHistogram(self.slots[end - SLOTS : end]) for end in ends]
        self.totals, self.queue, self.local, self.remote, self.send = parts


# Never modified.
_NONE_SLOW: Final = _SlowPhases()


class RequestMeter:
    """Statistics of one API, in microseconds and bytes.

    Attributes:
        errors: Responses per error code other than 0.
        last_us: Total of the last response.
        was_slow: Whether its phases were counted.
        stopwatch: Returns monotonic seconds.
    """

    __slots__ = (
        "_is_fast",
        "_size_slots",
        "_slow",
        "_total_slots",
        "errors",
        "last_us",
        "sizes",
        "stopwatch",
        "totals",
        "was_slow",
    )

    def __init__(self, stopwatch: Callable[[], float]) -> None:
        self.stopwatch = stopwatch
        # The C code reads the default stopwatch's clock.
        self._is_fast = _COUNT_REQUEST is not None and stopwatch is STOPWATCH
        self.totals = IntegerHistogram()
        self.sizes = IntegerHistogram()
        self._total_slots = self.totals.slots
        self._size_slots = self.sizes.slots
        self.errors: Counter[int] = Counter()
        self.last_us = 0
        self.was_slow = False
        self._slow = _NONE_SLOW

    def served(self, received_s: float, began_s: float, size: int) -> None:
        """Count a request whose handler returns a response.

        `received_s` is 0.0 if it is unknown when the loop noticed the bytes. `size` includes the
        header.
        """
        if received_s and began_s - received_s > _NOTICED_QUEUE_S:
            now_s = self.stopwatch()
            self._count_slow(received_s, began_s, now_s, now_s, size)
            return
        if self._is_fast:
            self.last_us = _COUNT_REQUEST(self._total_slots, began_s, self._size_slots, size)
        else:
            self.last_us = int((self.stopwatch() - began_s) * _US)
            self.totals.record(self.last_us)
            self.sizes.record(size)
        self.was_slow = False

    def served_later(self, received_s: float, began_s: float, returned_s: float) -> None:
        """Count a request whose response is ready now; its handler returned at `returned_s`."""
        self._count_slow(received_s, began_s, returned_s, self.stopwatch(), -1)

    def _count_slow(
        self, received_s: float, began_s: float, returned_s: float, now_s: float, size: int
    ) -> None:
        """Count every phase of a request, and its size unless it is negative."""
        slow = self._slow_phases()
        self.was_slow = True
        if _COUNT_SLOW is not None:
            self.last_us = _COUNT_SLOW(
                self._total_slots,
                slow.slots,
                self._size_slots,
                size,
                received_s,
                began_s,
                returned_s,
                now_s,
            )
            return
        queue_s = began_s - received_s if received_s else 0.0
        queue_us = int(queue_s * _US) if queue_s > _NOTICED_QUEUE_S else 0
        local_us = int((returned_s - began_s) * _US)
        remote_us = int((now_s - returned_s) * _US)
        self.last_us = total_us = queue_us + local_us + remote_us
        self.totals.record(total_us)
        slow.totals.record(total_us)
        slow.queue.record(queue_us)
        slow.local.record(local_us)
        slow.remote.record(remote_us)
        if size >= 0:
            self.sizes.record(size)

    def of(self, phase: Phase) -> IntegerHistogram:
        """Return the times of all requests in one phase."""
        if phase is Phase.TOTAL:
            return self.totals
        if phase is Phase.LOCAL:
            return self.totals.plus(self._slow.totals, -1).plus(self._slow.local)
        slow = self._slow
        parts = {Phase.QUEUE: slow.queue, Phase.REMOTE: slow.remote, Phase.SEND: slow.send}
        part = parts[phase]
        fast_requests = IntegerHistogram()
        fast_requests.record(0, self.totals.count - part.count)
        return part.plus(fast_requests)

    def sent_late(self, total_us: int, send_us: int, *, was_slow: bool) -> None:
        """Add the send time of a response that was counted without it."""
        slow = self._slow_phases()
        if _COUNT_SENT is not None:
            _COUNT_SENT(self._total_slots, slow.slots, total_us, send_us, was_slow)
            return
        after_us = total_us + send_us
        self.totals.record(total_us, -1)
        self.totals.record(after_us)
        slow.send.record(send_us)
        if was_slow:
            slow.totals.record(total_us, -1)
        else:
            slow.local.record(total_us)
        slow.totals.record(after_us)

    def _slow_phases(self) -> _SlowPhases:
        if self._slow is _NONE_SLOW:
            self._slow = _SlowPhases()
        return self._slow


class LateSend:
    """The last counted response, which the socket did not take immediately."""

    __slots__ = ("_began_s", "_meter", "_total_us", "_was_slow")

    def __init__(self, meter: RequestMeter, began_s: float) -> None:
        self._meter = meter
        self._total_us = meter.last_us
        self._was_slow = meter.was_slow
        self._began_s = began_s

    def ended(self) -> None:
        """Count the send time."""
        meter = self._meter
        send_us = int((meter.stopwatch() - self._began_s) * _US)
        meter.sent_late(self._total_us, send_us, was_slow=self._was_slow)


class RequestMeters:
    """Meters of one broker's APIs, by their names in Kafka's metrics (FETCH_NAMES for Fetch)."""

    __slots__ = ("by_name", "stopwatch")

    def __init__(self, stopwatch: Callable[[], float] = STOPWATCH) -> None:
        self.by_name: dict[str, RequestMeter] = {}
        self.stopwatch = stopwatch

    def meter(self, name: str) -> RequestMeter:
        """Return the meter of an API."""
        meter = self.by_name.get(name)
        if meter is None:
            meter = self.by_name[name] = RequestMeter(self.stopwatch)
        return meter
