"""A program that hosts group members, and a test's view of each member."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from compat_tests.clients.message import WAIT_S
from compat_tests.groups import clients
from tests.support.tools import tools

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

SESSION_MS = 2000
METADATA_AGE_MS = 300  # delay until a member sees new partitions
_NEVER_MS = 300_000
_LOOK_S = 0.25  # interval of checks whether the program has ended
_LAST_EVENTS = 40


@dataclass(slots=True, eq=False)
class Hosted:
    host: Host
    name: str
    owned: set[str] = field(default_factory=set)
    released: set[str] = field(default_factory=set)  # all partitions taken from it
    records: list[tuple[str, int]] = field(default_factory=list)
    rebalances: int = 0  # events with assigned partitions, or none
    commits: int = 0  # successful calls of `commit`
    complaints: list[str] = field(default_factory=list)
    is_stalled: bool = False
    has_left: bool = False

    def subscribe(self, *topics: str) -> None:
        """Replace the subscription; the first one also starts polling."""
        self.host.tell("subscribe", self.name, ",".join(topics))

    def stall(self) -> None:
        """Stop polling, like a program that is busy with a record; heartbeats continue."""
        self.host.tell("stall", self.name)
        self.host.wait(lambda: self.is_stalled, f"{self.name} does not poll")

    def poll(self) -> None:
        """Resume polling after `stall`."""
        self.is_stalled = False
        self.host.tell("poll", self.name)

    def commit(self, topic: str, partition: int, offset: int) -> None:
        """Commit this offset, polling or not; `commits` or `complaints` shows the result."""
        self.host.tell("commit", self.name, topic, str(partition), str(offset))

    def close(self) -> None:
        self.host.tell("close", self.name)
        self.host.wait(lambda: self.has_left, f"{self.name} has left")


class Host:
    """The program and its members.

    Args:
        command: The program's command, without the address of the broker.
        bootstrap: That address.
        errors: A file for its standard error.
    """

    def __init__(self, command: Sequence[str], bootstrap: str, errors: Path) -> None:
        self.bootstrap = bootstrap
        self._errors = errors
        with errors.open("ab") as error_file:
            self._process = subprocess.Popen(
                [*command, bootstrap],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=error_file,
                cwd=tools.PROJECT,
            )
        self._members: dict[str, Hosted] = {}
        self._events: list[str] = []
        self._unread = b""

    def open(self, group: str, assignor: str, *, max_poll_interval_ms: int = _NEVER_MS) -> Hosted:
        member = Hosted(self, f"m{len(self._members)}")
        self._members[member.name] = member
        times = (SESSION_MS, max_poll_interval_ms, METADATA_AGE_MS)
        self.tell("open", member.name, group, assignor, *map(str, times))
        return member

    def close(self) -> None:
        """End the program, whatever its members do."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.wait(WAIT_S)
        self._process.stdout.close()

    def tell(self, *command: str) -> None:
        assert self._process.stdin
        self._process.stdin.write("\t".join(command).encode() + b"\n")
        self._process.stdin.flush()

    def wait(self, condition: Callable[[], bool], description: str) -> None:
        assert self._process.stdout
        deadline = time.monotonic() + WAIT_S
        while True:
            self._read()
            if condition():
                return
            assert self._process.poll() is None, self._report("the program has ended")
            assert time.monotonic() < deadline, self._report(
                f"not in {WAIT_S:.0f} s: {description}"
            )
            select.select([self._process.stdout], [], [], _LOOK_S)

    def _read(self) -> None:
        assert self._process.stdout
        while select.select([self._process.stdout], [], [], 0)[0]:
            received = os.read(self._process.stdout.fileno(), 1 << 16)
            if not received:
                return
            *lines, self._unread = (self._unread + received).split(b"\n")
            for line in lines:
                self._events.append(line.decode())
                self._take(json.loads(line))

    def _take(self, event: dict[str, Any]) -> None:
        member = self._members[event["member"]]
        match event["event"]:
            case "assigned":
                member.rebalances += 1
                member.owned |= set(event["partitions"])
            case "revoked":
                member.owned -= set(event["partitions"])
                member.released |= set(event["partitions"])
            case "record":
                member.records.append((event["partition"], event["offset"]))
            case "error":
                member.complaints.append(event["error"])
            case "committed":
                member.commits += 1
            case "stalled":
                member.is_stalled = True
            case "left":
                member.has_left = True
                member.owned.clear()

    def _report(self, problem: str) -> str:
        owners = {
            member.name: sorted(member.owned) for member in self._members.values() if member.owned
        }
        lines = [problem, f"owners: {owners}", "last events:", *self._events[-_LAST_EVENTS:]]
        return "\n".join([*lines, self._errors.read_text(errors="replace")[-2000:]])


def confluent_command() -> list[str]:
    return [sys.executable, "-m", "compat_tests.groups.members.hosting"]


def java_command() -> list[str]:
    return clients.java_program("Host")
