"""What a broker in test mode is given, and what tests may have done to it while it runs.

A command is a name with arguments, its answer a value; both are JSON, so that it makes no
difference whether tests run in the broker's process (same_process.py) or ask over HTTP
(rig_routes.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.testing.api_names import api_named
from wirebroker.testing.request_journal import RequestJournal
from wirebroker.testing.rig_gate import RigGate

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping


class Rig:
    """The parts of one broker that tests take hold of; they outlive its stops and starts.

    Attributes:
        gate: Where requests pass.
    """

    def __init__(self) -> None:
        self._journal = RequestJournal()
        self.gate = RigGate(self._journal)
        self._commands: dict[str, Callable[[Mapping[str, Any]], Awaitable[Any]]] = {
            "requests": self._requests,
            "forget-requests": self._forget_requests,
        }

    async def carry_out(self, command: str, arguments: Mapping[str, Any]) -> Any:
        """Carry out a command, and return its answer.

        Raises:
            ValueError: There is no such command, or an argument does not fit; the text says which.
        """
        function = self._commands.get(command)
        if function is None:
            raise ValueError(f"there is no command {command}; there is {', '.join(self._commands)}")
        return await function(arguments)

    async def _requests(self, arguments: Mapping[str, Any]) -> list[dict[str, Any]]:
        name = arguments.get("api")
        most = arguments.get("most")
        return self._journal.rows(
            key=None if name is None else api_named(name),
            client_id=arguments.get("client_id"),
            most=None if most is None else int(most),
        )

    async def _forget_requests(self, _arguments: Mapping[str, Any]) -> None:
        self._journal.clear()
