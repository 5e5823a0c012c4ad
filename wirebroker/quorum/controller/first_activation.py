"""The first activation of a quorum's only voter; the start of the node waits for it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class FirstActivation:
    """The result of the first activation, while the start waits for it."""

    __slots__ = ("_result",)

    def __init__(self) -> None:
        self._result: asyncio.Future[None] | None = None

    async def after(self, start: Callable[[], None]) -> None:
        """Start the replica, and wait for its activation.

        Raises:
            Exception: The error given to `end`.
        """
        self._result = asyncio.get_running_loop().create_future()
        start()
        await self._result
        # After a failure it stays: a later failure of the activation is not reported again.
        self._result = None

    def end(self, error: Exception | None = None) -> bool:
        """Note that the activation has ended; return whether the start waits for it."""
        if self._result is None:
            return False
        if not self._result.done():
            if error is None:
                self._result.set_result(None)
            else:
                self._result.set_exception(error)
        return True
