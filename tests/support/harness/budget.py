"""How long a randomized test may take, and which seed it starts from.

`--budget-scale FLOAT`, `--seed N` and `--share FRACTION` come from the conftest.py at the root.
"""

from __future__ import annotations

import time
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest


# More processes than cores share them; what waits for others' work must end all the same.
_LONGEST_WALL = 4.0


class Budget:
    """A seed, a random source made of it, and a number of seconds of this process's CPU time.

    How much is tried so doesn't depend on what else the machine does.

    Args:
        config: Has the options.
        seconds: So many at --budget-scale 1.
    """

    def __init__(self, config: pytest.Config, *, seconds: float) -> None:
        self.seed: int = config.option.seed
        self.random = Random(self.seed)
        self._seconds = seconds * float(config.option.budget_scale)

    def rounds(self) -> Iterator[int]:
        """Yield 0, 1, 2 ... until the time is over, or four times of it by the wall; 0 always."""
        end = time.process_time() + self._seconds
        wall_end = time.monotonic() + _LONGEST_WALL * self._seconds
        number = 0
        while number == 0 or (time.process_time() < end and time.monotonic() < wall_end):
            yield number
            number += 1


class SharedBudget(Budget):
    """That of a test which `make test-compiled` runs too, from another seed: each has its share."""

    def __init__(self, config: pytest.Config, *, seconds: float) -> None:
        super().__init__(config, seconds=seconds * float(config.option.share))
