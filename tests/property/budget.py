"""How long a randomized test may take, and which seed it starts from.

`--budget-scale FLOAT` and `--seed N` come from the conftest.py at the root; without it they have
their defaults.
"""

from __future__ import annotations

import time
from random import Random, SystemRandom
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest


class Budget:
    """A seed, a random source made of it, and a number of seconds."""

    def __init__(self, config: pytest.Config, *, seconds: float) -> None:
        given = config.getoption("--seed", default=None)
        self.seed: int = SystemRandom().randrange(2**32) if given is None else int(given)
        self.random = Random(self.seed)
        self._seconds = seconds * float(config.getoption("--budget-scale", default=1.0))

    def rounds(self) -> Iterator[int]:
        """Yield 0, 1, 2 ... until the time is over; 0 always."""
        end = time.monotonic() + self._seconds
        number = 0
        while number == 0 or time.monotonic() < end:
            yield number
            number += 1
