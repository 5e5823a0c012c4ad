"""Clock and faults of all nodes of a cluster together."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from wirebroker.testing.broker.life import BrokerLife


class AllNodes:
    """A target of test commands that runs them on each node.

    A node that starts later gets the clock, but no faults.
    """

    def __init__(self, lives: Sequence[BrokerLife], paused: Callable[[], Sequence[int]]) -> None:
        """Use lives, which may be added later; `paused` returns ids of paused nodes."""
        self.clock_state: dict[str, Any] | None = None
        self._lives = lives
        self._paused = paused
        # Fault id of the cluster -> (node, start count) -> the node's own id.
        self._faults: dict[int, dict[tuple[BrokerLife, int], int]] = {}
        self._count = 0

    def forget(self) -> None:
        """Forget the faults and the clock of ended nodes."""
        self._faults.clear()
        self.clock_state = None

    def instruct(self, command: str, arguments: Mapping[str, Any]) -> Any:
        """Run a command on each running node; return one result.

        Raises:
            RuntimeError: No node is running, or one is paused.
            ValueError: An argument is invalid, or the fault is unknown.
        """
        running = [life for life in self._lives if life.host.is_running]
        if not running:
            raise RuntimeError("no node of the cluster is running: start the cluster, or a node")
        for node_id in self._paused():
            raise RuntimeError(f"node {node_id} is paused: resume it first")
        if command == "faults":
            return self._rows(running)
        number = arguments.get("id")
        own_ids = {} if number is None else self._own_ids(number)
        targets = [life for life in running if number is None or life in own_ids]
        if command == "limit-fault" and not targets:
            raise ValueError(f"there is no fault {number}")

        def run(life: BrokerLife) -> Any:
            own_id = {} if number is None else {"id": own_ids[life]}
            return life.instruct(command, {**arguments, **own_id})

        with ThreadPoolExecutor(len(running)) as pool:
            answers = dict(zip(targets, pool.map(run, targets), strict=True))
        if command == "move-clock":
            for life in self._lives:  # also those that start later
                life.clock_state = answers.get(life, answers[running[0]])
        if command != "add-fault":
            return next(iter(answers.values()), None)
        self._count += 1
        self._faults[self._count] = {
            (life, life.start_count): own_id for life, own_id in answers.items()
        }
        return self._count

    def _own_ids(self, number: int) -> dict[BrokerLife, int]:
        """Return the ids of a fault, except on restarted nodes: they count from 1 again."""
        return {
            life: own_id
            for (life, start_count), own_id in self._faults.get(number, {}).items()
            if life.start_count == start_count
        }

    def _rows(self, running: Sequence[BrokerLife]) -> list[dict[str, int]]:
        acted = {
            (life, row["id"]): row["acted"]
            for life in running
            for row in life.instruct("faults", {})
        }
        return [
            {
                "id": number,
                "acted": sum(acted.get(key, 0) for key in self._own_ids(number).items()),
            }
            for number in self._faults
        ]
