"""The time budget and the seed of randomized tests.

The root conftest.py defines `--budget-scale FLOAT`, `--seed N` and `--share FRACTION`.
"""

from __future__ import annotations

import time
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest


# Ends tests that mostly wait for other processes.
_LONGEST_WALL = 4.0


class Budget:
    """A seed, a random source made from it, and CPU seconds of this process.

    CPU time makes the number of rounds independent of other load.

    Args:
        config: The options.
        seconds: The budget at --budget-scale 1.
    """

    def __init__(self, config: pytest.Config, *, seconds: float) -> None:
        self.seed: int = config.option.seed
        self.random = Random(self.seed)
        self._seconds = seconds * float(config.option.budget_scale)

    def rounds(self) -> Iterator[int]:
        """Yield 0, 1, 2 ... until the budget or four times as much wall time is used."""
        end = time.process_time() + self._seconds
        wall_end = time.monotonic() + _LONGEST_WALL * self._seconds
        number = 0
        while number == 0 or (time.process_time() < end and time.monotonic() < wall_end):
            yield number
            number += 1


class SharedBudget(Budget):
    """A share of the budget, for a test that `make test-compiled` also runs, with another seed."""

    def __init__(self, config: pytest.Config, *, seconds: float) -> None:
        super().__init__(config, seconds=seconds * float(config.option.share))
