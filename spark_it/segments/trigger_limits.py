"""When a stream's next micro-batch begins: at so many new offsets, or behind so long a wait.

Source: the connector's KafkaMicroBatchStream.latestOffset and delayBatch, tried beside it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from wirebroker.segments.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.base.clock import Clock
    from wirebroker.storage.checkpoints import TopicPartition

# Source: Spark's JavaUtils.timeStringAs; without a unit it is milliseconds.
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
    """Tells whether a micro-batch may begin.

    Args:
        fewest: New offsets that make one; None: any number does.
        delay_ms: Since the last one was let begin, after which fewer do, too.
        clock: For the delay.
    """

    def __init__(self, fewest: int | None, delay_ms: int, clock: Clock) -> None:
        self._fewest = fewest
        self._delay_s = delay_ms / 1000
        self._clock = clock
        self._opened: float | None = None  # None: the first one of a run does not wait

    def opens(
        self, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
    ) -> bool:
        """Tell whether what lies between starts and ends is to be read now.

        Args:
            starts: Up to where each partition of `ends` was read.
            ends: Up to where each can be read.
        """
        if self._fewest is None:
            return True
        now = self._clock.monotonic()
        is_late = self._opened is None or now - self._opened >= self._delay_s
        if not is_late and sum(end - starts[key] for key, end in ends.items()) < self._fewest:
            return False
        self._opened = now
        return True


def delay_ms_of(name: str, text: str) -> int:
    """Return a time as Spark writes it, "10s", "15m", "200ms", "300", in milliseconds.

    Raises:
        OptionError: It is none.
    """
    found = _DELAY.fullmatch(text.strip().lower())
    unit = _UNITS_MS.get(found[2] or "ms") if found else None
    if found is None or unit is None:
        raise OptionError(f"option {name} is to be like 30s, 15m or 200ms, not {text[:100]}")
    return int(int(found[1]) * unit)
