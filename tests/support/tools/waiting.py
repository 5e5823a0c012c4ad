"""Wait for a condition that no event announces, on the event loop or in a thread.

Apache Kafka's controller responds before its brokers have applied a change, so a broker may apply
it a moment after the response.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from wirebroker.base.clock import pause

if TYPE_CHECKING:
    from collections.abc import Callable

# For conditions that need milliseconds on an idle machine.
PATIENCE_S = 30.0
_POLL_S = 0.05


async def until(condition: Callable[[], object], *, timeout_s: float = PATIENCE_S) -> None:
    """Wait until the condition is true.

    Raises:
        TimeoutError: It is still false after `timeout_s`.
    """
    async with asyncio.timeout(timeout_s):
        while not condition():
            await pause(0.001)


def eventually(
    condition: Callable[[], object], *, timeout_s: float = PATIENCE_S, poll_s: float = _POLL_S
) -> None:
    """Block until the condition is true; fail if it is still false after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"not true after {timeout_s:.0f} s"
        time.sleep(poll_s)  # no event announces it
