"""The parts of a broker in test mode that tests control, and their commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from wirebroker.testing.base.api_names import api_named
from wirebroker.testing.faults.fault_table import FaultTable
from wirebroker.testing.requests.request_journal import RequestJournal
from wirebroker.testing.test_mode.movable_clock import MovableClock
from wirebroker.testing.test_mode.recording_admission import RecordingAdmission

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from wirebroker.net.client.settings import PeerAddress


class Movable(Protocol):
    """A broker whose clock can be moved."""

    async def catch_up(self) -> None:
        """Do everything that is due after the clock was moved."""
        ...


class Endable(Protocol):
    """A broker that restarts within its process; all methods may raise ValueError."""

    async def crash(self) -> None:
        """Stop it as a kill does."""
        ...

    async def begin_again(self) -> None:
        """Start it after a crash."""
        ...

    async def reset(self) -> PeerAddress:
        """Replace it with an empty one at the returned address."""
        ...

    async def take_snapshot(self, name: str) -> str:
        """Copy its data to the returned directory."""
        ...

    async def restore(self, name: str) -> None:
        """Replace its data with a snapshot."""
        ...


class BrokerControls:
    """The controlled parts of one broker; they survive its restarts.

    A command has a name, JSON arguments and a JSON result. `server` is the last broker started.
    """

    def __init__(self) -> None:
        self._journal = RequestJournal()
        self.faults = FaultTable()
        self.admission = RecordingAdmission(self._journal, self.faults)
        self.clock = MovableClock()
        self.server: Movable | None = None
        self._commands: dict[str, Callable[[Mapping[str, Any]], Awaitable[Any]]] = {
            "requests": self._requests,
            "forget-requests": self._forget_requests,
            "faults": self._list_faults,
            "add-fault": self._add_fault,
            "limit-fault": self._limit_fault,
            "remove-fault": self._remove_fault,
            "clock": self._clock,
            "move-clock": self._move_clock,
            "restore-clock": self._restore_clock,
        }

    def use_lifecycle(self, life: Endable) -> None:
        """Add the commands that stop and start the broker."""

        async def crash(_arguments: Mapping[str, Any]) -> None:
            await life.crash()

        async def begin_again(_arguments: Mapping[str, Any]) -> None:
            await life.begin_again()

        async def reset(_arguments: Mapping[str, Any]) -> dict[str, Any]:
            return (await life.reset())._asdict()

        async def take_snapshot(arguments: Mapping[str, Any]) -> dict[str, Any]:
            return {"directory": await life.take_snapshot(_required(arguments, "name"))}

        async def restore(arguments: Mapping[str, Any]) -> None:
            await life.restore(_required(arguments, "name"))

        self._commands |= {
            "crash": crash,
            "start": begin_again,
            "reset": reset,
            "take-snapshot": take_snapshot,
            "restore": restore,
        }

    async def carry_out(self, command: str, arguments: Mapping[str, Any]) -> Any:
        """Run a command.

        Raises:
            ValueError: It is unknown, or an argument is invalid.
        """
        function = self._commands.get(command)
        if function is None:
            raise ValueError(f"no command {command}; there are {', '.join(self._commands)}")
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

    async def _list_faults(self, _arguments: Mapping[str, Any]) -> list[dict[str, Any]]:
        return self.faults.rows()

    async def _add_fault(self, arguments: Mapping[str, Any]) -> int:
        return self.faults.add(arguments)

    async def _limit_fault(self, arguments: Mapping[str, Any]) -> None:
        self.faults.limit(int(_required(arguments, "id")), int(_required(arguments, "times")))

    async def _remove_fault(self, arguments: Mapping[str, Any]) -> None:
        number = arguments.get("id")
        self.faults.remove(None if number is None else int(number))

    async def _clock(self, _arguments: Mapping[str, Any]) -> dict[str, Any]:
        return self.clock.state()

    async def _move_clock(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        advance_ms, set_ms = arguments.get("advance_ms"), arguments.get("set_ms")
        freeze = arguments.get("freeze")
        if arguments.get("reset"):
            self.clock.reset()
        if freeze:
            self.clock.freeze()
        elif freeze is not None:
            self.clock.resume()
        if advance_ms is not None:
            self.clock.advance(_integer("advance_ms", advance_ms))
        if set_ms is not None:
            self.clock.set_to(_integer("set_ms", set_ms))
        if self.server is not None:
            await self.server.catch_up()
        return self.clock.state()

    async def _restore_clock(self, arguments: Mapping[str, Any]) -> None:
        for name in ("passed_ms", "jumped_ms"):
            _required(arguments, name)
        self.clock.restore(arguments)


def _required(arguments: Mapping[str, Any], name: str) -> Any:
    if arguments.get(name) is None:
        raise ValueError(f"{name} is missing")
    return arguments[name]


def _integer(name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{name} must be a whole number of milliseconds, not {value!r}")  # noqa: TRY004
    return value
