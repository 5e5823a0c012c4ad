"""Waiting for what a broker makes true a moment after its answer.

Apache Kafka's controller answers before its broker has applied the change; wirebroker answers
after, which no test of both may rely on.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from compat_tests.clients.message import WAIT_S

if TYPE_CHECKING:
    from collections.abc import Callable

_POLL_S = 0.05


def eventually(condition: Callable[[], bool], *, timeout_s: float = WAIT_S) -> None:
    """Return once the condition holds; fail when it does not in time."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"not true after {timeout_s:.0f} s"
        time.sleep(_POLL_S)
