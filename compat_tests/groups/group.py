"""A consumer group of member programs; a test observes its assignments and consumed records.

All members write to one pipe, so that their events have one order. Each event is checked: a member
consumes no record that was committed before its partition was assigned.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, Producer, TopicPartition

from compat_tests.clients.message import WAIT_S
from compat_tests.support import topics
from tests.support.tools import tools

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from compat_tests.groups.clients import GroupClient

PARTITIONS = 6
SESSION_MS = 2000  # short, because tests wait for sessions to expire
_LOOK_S = 0.25  # interval of checks whether a member has ended
_LAST_EVENTS = 40


class Member:
    """One member program, from start to end."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], errors: Path) -> None:
        self.name = name
        self.process = process
        self.errors = errors  # standard error of the program
        self.owned: set[int] = set()
        self.floors: dict[int, int] = {}  # partition -> committed offset at its assignment
        self.rebalances = 0  # events with assigned partitions, or none
        self.records: list[tuple[int, int]] = []
        self.complaints: list[str] = []
        self.has_left = False


class Group:
    """A group on one topic, and the topic's producer.

    Args:
        bootstrap: Address of the broker.
        topic: Name of a new topic.
        directory: Folder for the members' standard error.
        session_ms: The members' session timeout.
    """

    def __init__(
        self, bootstrap: str, topic: str, directory: Path, *, session_ms: int = SESSION_MS
    ) -> None:
        self.bootstrap = bootstrap
        self.topic = topic
        self.name = f"group-of-{topic}"
        self.directory = directory
        self.session_ms = session_ms
        self.members: dict[str, Member] = {}
        self.ends = dict.fromkeys(range(PARTITIONS), 0)
        self.committed = dict.fromkeys(range(PARTITIONS), 0)
        self.processed: set[tuple[int, int]] = set()
        self._events: list[str] = []
        self._unread = b""
        self._reading, self._writing = os.pipe()
        topics.create(bootstrap, topic, partitions=PARTITIONS)
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
        config = {"bootstrap.servers": bootstrap, "group.id": self.name}
        self._offsets: Any = Consumer(config)  # fetches offsets; never joins

    def close(self) -> None:
        for member in self.members.values():
            _signal(member, signal.SIGKILL)
            member.process.wait(WAIT_S)
            if member.process.stdin:
                member.process.stdin.close()
        self._offsets.close()
        os.close(self._reading)
        os.close(self._writing)

    # Members

    def start(
        self, client: GroupClient, name: str, assignors: str, *, instance_id: str = "-"
    ) -> Member:
        """Start a member program without waiting until it joins."""
        assert name not in self.members or self.members[name].process.poll() is not None
        arguments = [name, self.bootstrap, self.topic, self.name, assignors, instance_id]
        errors = self.directory / f"{name}.stderr"
        with errors.open("ab") as error_file:
            process = subprocess.Popen(
                [*client.command(), *arguments, str(self.session_ms)],
                stdin=subprocess.PIPE,
                stdout=self._writing,
                stderr=error_file,
                cwd=tools.PROJECT,
                env={**os.environ, **client.environment()},
                start_new_session=True,  # signals reach child processes too
            )
        member = Member(name, process, errors)
        self.members[name] = member
        return member

    def leave(self, member: Member) -> None:
        assert member.process.stdin
        member.process.stdin.write(b"leave\n")
        member.process.stdin.flush()
        self.wait(lambda: member.has_left, f"{member.name} has left")
        member.process.wait(WAIT_S)
        self._forget(member)

    def kill9(self, member: Member) -> None:
        """Kill a member, so that it does not leave the group."""
        _signal(member, signal.SIGKILL)
        member.process.wait(WAIT_S)
        self._read()
        self._forget(member)

    def stop(self, member: Member) -> None:
        """Suspend a member; its connections stay open."""
        _signal(member, signal.SIGSTOP)

    def resume(self, member: Member) -> None:
        """Resume a suspended member, which may have lost its partitions."""
        _signal(member, signal.SIGCONT)

    def _forget(self, member: Member) -> None:
        assert member.process.stdin
        member.process.stdin.close()
        del self.members[member.name]

    # Records

    def produce(self, count: int = 5) -> None:
        errors: list[Any] = []

        def on_delivery(error: Any, _: Any) -> None:
            if error is not None:
                errors.append(error)

        for partition in range(PARTITIONS):
            for number in range(self.ends[partition], self.ends[partition] + count):
                value = b"%d" % number
                self._producer.produce(
                    self.topic, value, partition=partition, on_delivery=on_delivery
                )
            self.ends[partition] += count
        assert self._producer.flush(WAIT_S) == 0
        assert not errors

    def wait_until_processed(self, *, and_committed: bool = True) -> None:

        def is_processed() -> bool:
            return all((p, end - 1) in self.processed for p, end in self.ends.items() if end)

        self.wait(is_processed, "every record is consumed")
        expected = {(p, o) for p, end in self.ends.items() for o in range(end)}
        assert self.processed == expected, f"skipped: {sorted(expected - self.processed)}"
        if and_committed:
            self.wait(lambda: self.fetch_committed() == self.ends, "everything is committed")
        else:
            self.fetch_committed()

    def fetch_committed(self) -> dict[int, int]:
        """Fetch the group's committed offsets and check that none decreased."""
        topic_partitions = [
            TopicPartition(self.topic, partition) for partition in range(PARTITIONS)
        ]
        earlier = dict(self.committed)
        answer = self._offsets.committed(topic_partitions, timeout=WAIT_S)
        offsets = {
            topic_partition.partition: max(0, topic_partition.offset) for topic_partition in answer
        }
        for partition, offset in offsets.items():
            before = earlier[partition]
            assert offset >= before, f"partition {partition} went back from {before} to {offset}"
        self._read()  # earlier assignments are not checked against these commits
        for partition, offset in offsets.items():
            self.committed[partition] = max(self.committed[partition], offset)
        return offsets

    # Waiting

    def wait_until_shared_by(self, *members: Member) -> None:
        """Wait until these members own all partitions, evenly and each one once."""
        fair_counts = {PARTITIONS // len(members), -(-PARTITIONS // len(members))}

        def is_shared() -> bool:
            owned = [p for member in members for p in member.owned]
            all_are_owned = sorted(owned) == list(range(PARTITIONS))
            return all_are_owned and all(len(member.owned) in fair_counts for member in members)

        names = ", ".join(member.name for member in members)
        self.wait(is_shared, f"{names} share the partitions")

    def wait(self, condition: Callable[[], bool], description: str) -> None:
        deadline = time.monotonic() + WAIT_S
        while True:
            self._read()
            if condition():
                return
            ended_members = [member for member in self.members.values() if member.process.poll()]
            assert not ended_members, self._report(f"{ended_members[0].name} has ended")
            assert time.monotonic() < deadline, self._report(
                f"not in {WAIT_S:.0f} s: {description}"
            )
            select.select([self._reading], [], [], _LOOK_S)

    def _read(self) -> None:
        while select.select([self._reading], [], [], 0)[0]:
            self._unread += os.read(self._reading, 1 << 16)
            *lines, self._unread = self._unread.split(b"\n")
            for line in lines:
                self._events.append(line.decode())
                self._take(json.loads(line))

    def _take(self, event: dict[str, Any]) -> None:
        member = self.members.get(event["member"])
        assert member, f"an event of a member that is gone: {event}"
        match event["event"]:
            case "assigned":
                member.rebalances += 1
                member.owned |= set(event["partitions"])
                for partition in event["partitions"]:
                    member.floors[partition] = self.committed[partition]
            case "revoked":
                member.owned -= set(event["partitions"])
            case "record":
                self._take_record(member, event["partition"], event["offset"])
            case "committed":
                at = event["partition"]
                self.committed[at] = max(self.committed[at], event["offset"])
            case "error":
                member.complaints.append(event["error"])
            case "left":
                member.has_left = True

    def _take_record(self, member: Member, partition: int, offset: int) -> None:
        floor = member.floors.get(partition, 0)
        assert offset >= floor, self._report(
            f"{member.name} consumed {offset} of partition {partition},"
            f" of which {floor} was committed when it was assigned"
        )
        member.records.append((partition, offset))
        self.processed.add((partition, offset))

    def _report(self, problem: str) -> str:
        owners = {member.name: sorted(member.owned) for member in self.members.values()}
        lines = [problem, f"owners: {owners}", f"ends: {self.ends}", "last events:"]
        lines += self._events[-_LAST_EVENTS:]
        for member in self.members.values():
            text = member.errors.read_text(errors="replace").strip()
            lines += [f"{member.name} says: {line}" for line in text.splitlines()[-8:]]
        return "\n".join(lines)


@contextlib.contextmanager
def group_on(
    bootstrap: str, topic: str, directory: Path, *, session_ms: int = SESSION_MS
) -> Iterator[Group]:
    group = Group(bootstrap, topic, directory, session_ms=session_ms)
    try:
        yield group
    finally:
        group.close()


def _signal(member: Member, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(member.process.pid, number)
