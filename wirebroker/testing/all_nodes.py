"""All nodes of a cluster, told the same: its clock and its faults are those of each node.

A node that does not run is told of the clock when it starts, and of faults not at all.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wirebroker.testing.life import BrokerLife


class AllNodes:
    """Carries out what one broker's life does, on each node."""

    def __init__(self, lives: Sequence[BrokerLife]) -> None:
        """Take the nodes' lives, at least one; the sequence may be filled later."""
        self._lives = lives
        # By the number that a fault has here: those that nodes gave it.
        self._faults: dict[int, dict[BrokerLife, int]] = {}
        self._count = 0

    @property
    def clock_state(self) -> dict[str, Any] | None:
        """How the clocks were moved; all are by the same."""
        return self._lives[0].clock_state if self._lives else None

    @clock_state.setter
    def clock_state(self, state: dict[str, Any] | None) -> None:
        for life in self._lives:
            life.clock_state = state

    def forget(self) -> None:
        """Forget the faults of nodes that are gone."""
        self._faults.clear()

    def instruct(self, command: str, arguments: Mapping[str, Any]) -> Any:
        """Have each node that runs carry out a command, and return what they answer together.

        Raises:
            RuntimeError: None runs.
            ValueError: An argument does not fit.
        """
        running = [each for each in self._lives if each.host.is_running]
        if not running:
            raise RuntimeError("no node of the cluster runs")
        if command == "faults":
            return self._rows(running)
        numbers = self._faults.get(arguments.get("id", -1), {})
        asked = {
            life: {**arguments, "id": numbers[life]} if life in numbers else arguments
            for life in running
            if not numbers or life in numbers
        }
        with ThreadPoolExecutor(len(running)) as pool:
            answers = dict(
                zip(
                    asked,
                    pool.map(lambda life: life.instruct(command, asked[life]), asked),
                    strict=True,
                )
            )
        if command != "add-fault":
            return next(iter(answers.values()), None)
        self._count += 1
        self._faults[self._count] = answers
        return self._count

    def _rows(self, running: Sequence[BrokerLife]) -> list[dict[str, int]]:
        """Return how often faults have acted, on all nodes together."""
        acted = {
            (life, each["id"]): each["acted"]
            for life in running
            for each in life.instruct("faults", {})
        }
        return [
            {
                "id": number,
                "acted": sum(acted.get(place, 0) for place in numbers.items()),
            }
            for number, numbers in self._faults.items()
        ]
