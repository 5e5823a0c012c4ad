"""Pauses between the attempts of a retried record.

`1s,10s,1m` lists them; the last one repeats. `exponential(1s,5m,0.2)` doubles the first pause up to
the second, and spreads each by a fifth in both directions. The third part may be missing.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final, NamedTuple

from wirebroker.delivery.model.durations import parse_duration

_EXPONENTIAL: Final = re.compile(
    r"exponential\(([^,()]+),([^,()]+)(?:,\s*(0?\.\d{1,6}|0|1|1\.0)\s*)?\)", re.ASCII
)
_MOST_PAUSES: Final = 100
_MOST_DOUBLINGS: Final = 60
_SPREAD_STEPS: Final = 1 << 16
_SHOWN_CHARACTERS: Final = 40


class RetryBackoff(NamedTuple):
    """The pauses, in milliseconds.

    With a `cap_ms`, `pauses_ms` has the first pause alone.
    """

    pauses_ms: tuple[int, ...]
    cap_ms: int | None = None
    jitter: float = 0.0

    @property
    def length(self) -> int | None:
        """The number of listed pauses, or None if they are computed."""
        return len(self.pauses_ms) if self.cap_ms is None else None

    def pause_ms(self, attempt: int, seed: bytes) -> int:
        """Return the pause before attempt 1, 2, …; jitter depends on `seed` alone."""
        assert attempt >= 1
        if self.cap_ms is None:
            return self.pauses_ms[min(attempt, len(self.pauses_ms)) - 1]
        pause_ms = min(self.pauses_ms[0] << min(attempt - 1, _MOST_DOUBLINGS), self.cap_ms)
        digest = hashlib.blake2b(seed, digest_size=2).digest()
        share = int.from_bytes(digest) / _SPREAD_STEPS
        return round(pause_ms * (1 + self.jitter * (2 * share - 1)))


DEFAULT_BACKOFF: Final = RetryBackoff((1_000, 10_000, 60_000))


def parse_backoff(text: str) -> RetryBackoff:
    """Return the pauses of a `retry-backoff` header.

    Raises:
        ValueError: The text has another form, or more than 100 pauses.
    """
    computed = _EXPONENTIAL.fullmatch(text)
    if computed is not None:
        first_ms, cap_ms = parse_duration(computed[1].strip()), parse_duration(computed[2].strip())
        if not 0 < first_ms <= cap_ms:
            raise ValueError("the first pause must be over 0 and at most the last")
        return RetryBackoff((first_ms,), cap_ms, float(computed[3] or 0))
    if text.startswith("exponential"):
        raise ValueError(
            f"{text[:_SHOWN_CHARACTERS]!r} is not a retry-backoff: write 1s,10s,1m or"
            " exponential(1s,5m,0.2)"
        )
    pauses = text.split(",", _MOST_PAUSES)
    if len(pauses) > _MOST_PAUSES:
        raise ValueError(f"more than {_MOST_PAUSES} pauses")
    return RetryBackoff(tuple(parse_duration(pause.strip()) for pause in pauses))
