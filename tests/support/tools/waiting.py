"""Waiting, in a thread, for what a broker in another process makes true a moment after its answer.

Apache Kafka's controller answers before its broker has applied the change; wirebroker answers
after, which no test of both may rely on.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_PATIENCE_S = 30.0  # for what takes milliseconds on an idle machine
_POLL_S = 0.05


def eventually(condition: Callable[[], bool], *, timeout_s: float = _PATIENCE_S) -> None:
    """Return once the condition holds; fail when it does not in time."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"not true after {timeout_s:.0f} s"
        time.sleep(_POLL_S)
