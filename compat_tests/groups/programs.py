"""Member programs that run at the same time, and their events in one order.

All programs write to one pipe, so that their events have one order. What an event means, and which
checks apply to it, is up to the kind of group: see group.py and share_group.py.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from compat_tests.clients.message import WAIT_S
from tests.support.tools import tools

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

_LOOK_S = 0.25  # interval of checks whether a member has ended
_LAST_EVENTS = 40


class Program:
    """One member program, from start to end."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], errors: Path) -> None:
        self.name = name
        self.process = process
        self.errors = errors  # standard error of the program
        self.complaints: list[str] = []
        self.has_left = False

    def tell(self, command: str) -> None:
        """Send a line to the program's standard input."""
        assert self.process.stdin
        self.process.stdin.write(command.encode() + b"\n")
        self.process.stdin.flush()


AnyProgram = TypeVar("AnyProgram", bound=Program)


class Programs(Generic[AnyProgram]):
    """The running programs of a test.

    Args:
        directory: Folder for the programs' standard error.
        patience_s: Time for a condition to become true.
    """

    def __init__(self, directory: Path, *, patience_s: float = WAIT_S) -> None:
        self.directory = directory
        self.patience_s = patience_s
        self.members: dict[str, AnyProgram] = {}
        self._events: list[str] = []
        self._unread = b""
        self._reading, self._writing = os.pipe()

    def close(self) -> None:
        for member in self.members.values():
            _signal(member, signal.SIGKILL)
            member.process.wait(WAIT_S)
            if member.process.stdin:
                member.process.stdin.close()
        os.close(self._reading)
        os.close(self._writing)

    def take(self, event: dict[str, Any]) -> None:
        """Record and check an event of a member; each kind of group extends this."""
        match event["event"]:
            case "error":
                self.members[event["member"]].complaints.append(event["error"])
            case "left":
                self.members[event["member"]].has_left = True

    def describe(self) -> list[str]:
        """Return lines about the state of the group, for reports."""
        return []

    # Starting and ending

    def launch(
        self,
        kind: Callable[[str, subprocess.Popen[bytes], Path], AnyProgram],
        name: str,
        command: Sequence[str],
        environment: Mapping[str, str],
    ) -> AnyProgram:
        """Start a program.

        Args:
            kind: Class of the member.
            name: Name of the member.
            command: Command and arguments.
            environment: Variables in addition to those of this process.
        """
        assert name not in self.members or self.members[name].process.poll() is not None
        errors = self.directory / f"{name}.stderr"
        with errors.open("ab") as error_file:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=self._writing,
                stderr=error_file,
                cwd=tools.PROJECT,
                env={**os.environ, **environment},
                start_new_session=True,  # signals reach child processes too
            )
        member = kind(name, process, errors)
        self.members[name] = member
        return member

    def leave(self, member: AnyProgram) -> None:
        member.tell("leave")
        self.wait(lambda: member.has_left, f"{member.name} has left")
        member.process.wait(WAIT_S)
        self._forget(member)

    def kill9(self, member: AnyProgram) -> None:
        """Kill a member, so that it does not leave the group."""
        _signal(member, signal.SIGKILL)
        member.process.wait(WAIT_S)
        self._read()
        self._forget(member)

    def stop(self, member: AnyProgram) -> None:
        """Suspend a member; its connections stay open."""
        _signal(member, signal.SIGSTOP)

    def resume(self, member: AnyProgram) -> None:
        """Resume a suspended member, which may have lost its partitions."""
        _signal(member, signal.SIGCONT)

    def _forget(self, member: AnyProgram) -> None:
        assert member.process.stdin
        member.process.stdin.close()
        del self.members[member.name]

    # Waiting

    def wait(self, condition: Callable[[], bool], description: str) -> None:
        deadline = time.monotonic() + self.patience_s
        while True:
            self._read()
            if condition():
                return
            ended_members = [member for member in self.members.values() if member.process.poll()]
            assert not ended_members, self.report(f"{ended_members[0].name} has ended")
            assert time.monotonic() < deadline, self.report(
                f"not in {self.patience_s:.0f} s: {description}"
            )
            select.select([self._reading], [], [], _LOOK_S)

    def _read(self) -> None:
        while select.select([self._reading], [], [], 0)[0]:
            self._unread += os.read(self._reading, 1 << 16)
            *lines, self._unread = self._unread.split(b"\n")
            for line in lines:
                self._events.append(line.decode())
                event = json.loads(line)
                assert event["member"] in self.members, f"a member that is gone: {event}"
                self.take(event)

    def report(self, problem: str) -> str:
        lines = [problem, *self.describe(), "last events:", *self._events[-_LAST_EVENTS:]]
        for member in self.members.values():
            text = member.errors.read_text(errors="replace").strip()
            lines += [f"{member.name} says: {line}" for line in text.splitlines()[-8:]]
        return "\n".join(lines)


def _signal(member: Program, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(member.process.pid, number)
