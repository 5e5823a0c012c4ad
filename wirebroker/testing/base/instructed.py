"""The protocol of objects that run test commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping


class Instructed(Protocol):
    """A broker, or all nodes of a cluster.

    Attributes:
        clock_state: State of the moved clock; None if it was not moved.
    """

    clock_state: dict[str, Any] | None

    def instruct(self, command: str, arguments: Mapping[str, Any]) -> Any:
        """Run a test command (controls.py)."""
        ...
