"""A consumer group of member programs; a test observes its assignments and consumed records.

Each event is checked: a member consumes no record that was committed before its partition was
assigned.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, Producer, TopicPartition

from compat_tests.clients.message import WAIT_S
from compat_tests.groups.programs import Program, Programs
from compat_tests.support import topics

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

    from compat_tests.groups.clients import GroupClient

PARTITIONS = 6
# Clients of librdkafka abandon a frozen broker sooner than by default.
QUICK_RETRIES = {"socket.timeout.ms": 10_000, "topic.metadata.refresh.interval.ms": 1000}
SESSION_MS = 2000  # short, because tests wait for sessions to expire


class Member(Program):
    """One member program, and what it owns."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], errors: Path) -> None:
        super().__init__(name, process, errors)
        self.owned: set[int] = set()
        self.floors: dict[int, int] = {}  # partition -> committed offset at its assignment
        self.rebalances = 0  # events with assigned partitions, or none
        self.records: list[tuple[int, int]] = []
        self.may_be_replaced = False  # suspended: its session may expire


class Group(Programs[Member]):
    """A group on one topic, and the topic's producer.

    Args:
        bootstrap: Address of the broker.
        topic: Name of a new topic.
        directory: Folder for the members' standard error.
        session_ms: The members' session timeout.
        replicas: Number of the topic's replicas.
        patience_s: Time for a condition to become true.
        exclusive: Whether sessions are too long to expire on a busy machine: no partition may then
            be assigned to a member while another owns it, unless that one is suspended.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        directory: Path,
        *,
        session_ms: int = SESSION_MS,
        replicas: int = 1,
        patience_s: float = WAIT_S,
        exclusive: bool = False,
    ) -> None:
        super().__init__(directory, patience_s=patience_s)
        self.exclusive = exclusive
        self.bootstrap = bootstrap
        self.topic = topic
        self.name = f"group-of-{topic}"
        self.session_ms = session_ms
        self.ends = dict.fromkeys(range(PARTITIONS), 0)
        self.committed = dict.fromkeys(range(PARTITIONS), 0)
        self.processed: set[tuple[int, int]] = set()
        topics.create(bootstrap, topic, partitions=PARTITIONS, replicas=replicas)
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "linger.ms": 5,
                **QUICK_RETRIES,
            }
        )
        config = {"bootstrap.servers": bootstrap, "group.id": self.name, **QUICK_RETRIES}
        self._offsets: Any = Consumer(config)  # fetches offsets; never joins

    def close(self) -> None:
        super().close()
        self._offsets.close()

    def start(
        self, client: GroupClient, name: str, assignors: str, *, instance_id: str = "-"
    ) -> Member:
        """Start a member program without waiting until it joins."""
        arguments = [name, self.bootstrap, self.topic, self.name, assignors, instance_id]
        command = [*client.command(), *arguments, str(self.session_ms)]
        return self.launch(Member, name, command, client.environment())

    def stop(self, member: Member) -> None:
        member.may_be_replaced = True
        super().stop(member)

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
        assert self._producer.flush(self.patience_s) == 0
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
        answer = self._offsets.committed(topic_partitions, timeout=self.patience_s)
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

    # Events

    def take(self, event: dict[str, Any]) -> None:
        super().take(event)
        member = self.members[event["member"]]
        match event["event"]:
            case "assigned":
                member.rebalances += 1
                self._check_owners(member, set(event["partitions"]))
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

    def _check_owners(self, member: Member, assigned: set[int]) -> None:
        if not self.exclusive:
            return
        for other in self.members.values():
            twice = other.owned & assigned
            assert other is member or other.may_be_replaced or not twice, self.report(
                f"{member.name} is assigned {sorted(twice)}, which {other.name} owns"
            )

    def _take_record(self, member: Member, partition: int, offset: int) -> None:
        floor = member.floors.get(partition, 0)
        assert offset >= floor, self.report(
            f"{member.name} consumed {offset} of partition {partition},"
            f" of which {floor} was committed when it was assigned"
        )
        member.records.append((partition, offset))
        self.processed.add((partition, offset))

    def describe(self) -> list[str]:
        owners = {member.name: sorted(member.owned) for member in self.members.values()}
        return [f"owners: {owners}", f"ends: {self.ends}"]


@contextlib.contextmanager
def group_on(bootstrap: str, topic: str, directory: Path, **options: Any) -> Iterator[Group]:
    """Make a group; the options are those of Group."""
    group = Group(bootstrap, topic, directory, **options)
    try:
        yield group
    finally:
        group.close()
