"""Who carries out what tests ask of a broker's rig: one broker, or all nodes of a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping


class Instructed(Protocol):
    """What clock and faults are set by.

    Attributes:
        clock_state: How the clock was moved; None if it was not.
    """

    clock_state: dict[str, Any] | None

    def instruct(self, command: str, arguments: Mapping[str, Any]) -> Any:
        """Have a command carried out (rig.py), and return its answer."""
        ...
