"""Clock and faults of all nodes of a cluster together.

A node that starts later gets the clock, but no faults.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from wirebroker.testing.broker.life import BrokerLife


class AllNodes:
    """A target of test commands that runs them on each node.

    Attributes:
        clock_state: State of the clocks; None if they were not moved.
    """

    def __init__(self, lives: Sequence[BrokerLife], paused: Callable[[], Sequence[int]]) -> None:
        """Use the nodes' lives, which may be added later; `paused` returns ids of paused nodes."""
        self.clock_state: dict[str, Any] | None = None
        self._lives = lives
        self._paused = paused
        # Fault id of the cluster -> the nodes' own ids.
        self._faults: dict[int, dict[BrokerLife, int]] = {}
        self._count = 0

    def forget(self) -> None:
        """Forget the faults and the clock of ended nodes."""
        self._faults.clear()
        self.clock_state = None

    def instruct(self, command: str, arguments: Mapping[str, Any]) -> Any:
        """Run a command on each running node, and return one result for all.

        Raises:
            RuntimeError: No node is running, or one is paused.
            ValueError: An argument is invalid.
        """
        running = [life for life in self._lives if life.host.is_running]
        if not running:
            raise RuntimeError("no node of the cluster is running: start the cluster, or a node")
        for node_id in self._paused():
            raise RuntimeError(f"node {node_id} is paused: resume it first")
        if command == "faults":
            return self._rows(running)
        numbers = self._faults.get(arguments.get("id", -1), {})
        targets = [life for life in running if not numbers or life in numbers]

        def tell(life: BrokerLife) -> Any:
            its_own = {"id": numbers[life]} if numbers else {}
            return life.instruct(command, {**arguments, **its_own})

        with ThreadPoolExecutor(len(running)) as pool:
            answers = dict(zip(targets, pool.map(tell, targets), strict=True))
        if command == "move-clock":
            for life in self._lives:  # also those that start later
                life.clock_state = answers.get(life, answers[running[0]])
        if command != "add-fault":
            return next(iter(answers.values()), None)
        self._count += 1
        self._faults[self._count] = answers
        return self._count

    def _rows(self, running: Sequence[BrokerLife]) -> list[dict[str, int]]:
        """Return how often each fault has acted on all nodes together."""
        acted = {
            (life, row["id"]): row["acted"]
            for life in running
            for row in life.instruct("faults", {})
        }
        return [
            {
                "id": number,
                "acted": sum(acted.get(key, 0) for key in numbers.items()),
            }
            for number, numbers in self._faults.items()
        ]
