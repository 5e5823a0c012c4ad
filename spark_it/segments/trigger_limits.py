"""The start of a stream's next micro-batch: after enough new offsets, or after a delay.

Source: the connector's KafkaMicroBatchStream.latestOffset and delayBatch.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from wirebroker.segments.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.base.clock import Clock
    from wirebroker.storage.checkpoints import TopicPartition

# Source: Spark's JavaUtils.timeStringAs; the default unit is milliseconds.
_UNITS_MS: Final = {
    "us": 0.001,
    "ms": 1,
    "s": 1_000,
    "m": 60_000,
    "min": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
}
_DELAY: Final = re.compile(r"([0-9]{1,15})([a-z]*)")


class TriggerGate:
    """Decision whether a micro-batch may start.

    `fewest` new offsets suffice (None: any number), or fewer after `delay_ms` since the last batch.
    """

    def __init__(self, fewest: int | None, delay_ms: int, clock: Clock) -> None:
        self._fewest = fewest
        self._delay_s = delay_ms / 1000
        self._clock = clock
        self._opened: float | None = None  # None: a run's first batch does not wait

    def opens(
        self, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
    ) -> bool:
        """Return whether to read the offsets between starts and ends now."""
        if self._fewest is None:
            return True
        now = self._clock.monotonic()
        is_late = self._opened is None or now - self._opened >= self._delay_s
        if not is_late and sum(end - starts[key] for key, end in ends.items()) < self._fewest:
            return False
        self._opened = now
        return True


def delay_ms_of(name: str, text: str) -> int:
    """Convert a time such as "10s", "15m", "200ms" or "300" to milliseconds; raise OptionError."""
    match = _DELAY.fullmatch(text.strip().lower())
    unit = _UNITS_MS.get(match[2] or "ms") if match else None
    if match is None or unit is None:
        raise OptionError(f"option {name} must be like 30s, 15m or 200ms, not {text[:100]}")
    return int(int(match[1]) * unit)
