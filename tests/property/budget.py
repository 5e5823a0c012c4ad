"""How long a randomized test may take, and which seed it starts from.

`--budget-scale FLOAT` and `--seed N` come from the conftest.py at the root.
"""

from __future__ import annotations

import time
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest


class Budget:
    """A seed, a random source made of it, and a number of seconds."""

    def __init__(self, config: pytest.Config, *, seconds: float) -> None:
        self.seed: int = config.option.seed
        self.random = Random(self.seed)
        self._seconds = seconds * float(config.option.budget_scale)

    def rounds(self) -> Iterator[int]:
        """Yield 0, 1, 2 ... until the time is over; 0 always."""
        end = time.monotonic() + self._seconds
        number = 0
        while number == 0 or time.monotonic() < end:
            yield number
            number += 1
