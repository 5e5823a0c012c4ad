"""The lines of Python that each step of a generator runs: a measure of its length."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Generator


def lines_of_steps(steps: Generator[None, None, Any]) -> list[int]:
    """Run steps; return the lines that each one runs."""
    counts, is_over = [0], object()

    def trace(_frame: Any, event: str, _value: object) -> Any:
        if event == "line":
            counts[-1] += 1
        return trace

    sys.settrace(trace)
    try:
        while next(steps, is_over) is not is_over:
            counts.append(0)
    finally:
        sys.settrace(None)
    return counts
