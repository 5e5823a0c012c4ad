"""A bound of the memory that bodies of requests take."""

from __future__ import annotations

import asyncio
from typing import Final

_MOST_LARGE_BODIES: Final = 16


class BodyBudget:
    """Few of the larger bodies are read at once; the others wait.

    Attributes:
        large: Is held while a larger body is read.
    """

    __slots__ = ("large",)

    def __init__(self) -> None:
        self.large = asyncio.Semaphore(_MOST_LARGE_BODIES)
