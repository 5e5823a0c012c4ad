"""A share group of member programs (KIP-932); a test observes deliveries and acknowledgements.

Each event is checked, whatever order members print them in:

- A record is accepted or rejected with its last delivery: it is not delivered again later.
- Two deliveries of a record have different counts, unless a broker has ended in between; brokers
  store the counts only with acknowledgements.
- As long as no member and no broker fails, each record is delivered once
  (`check_single_deliveries`).
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import Producer

from compat_tests.clients.message import WAIT_S
from compat_tests.groups.group import QUICK_RETRIES
from compat_tests.groups.programs import Program, Programs
from compat_tests.support.raw_requests import Requests
from tests.support.tools.waiting import eventually
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from compat_tests.groups.clients import ShareClient

LOCK_MS: Final = 60_000  # too long to expire on a busy machine
_GROUP: Final = 32  # resource type
_SET: Final = 0  # operation of IncrementalAlterConfigs
_BATCH: Final = 5  # records of a partition that are sent together

Place = tuple[str, int]  # partition and offset


class ShareMember(Program):
    """One member program, and the records that it got."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], errors: Path) -> None:
        super().__init__(name, process, errors)
        self.acquired: dict[Place, int] = {}  # with the count of the last delivery to it
        self.held: list[Place] = []  # those for which it waits for a command
        self.last_batch: list[Place] = []
        self.refusals: list[str] = []
        self.ignored = 0  # confirmed acknowledgements of records that others had acknowledged
        self.done = 0  # records whose acknowledgement was confirmed

    def end_batch(self) -> None:
        self.held.clear()
        self.last_batch.clear()


class ShareGroup(Programs[ShareMember]):
    """A share group, and the producer of its topics' records.

    Args:
        bootstrap: Address of the brokers.
        name: Name of the group.
        topics: Topics that members subscribe to.
        directory: Folder for the members' standard error.
        patience_s: Time for a condition to become true.
    """

    def __init__(
        self,
        bootstrap: str,
        name: str,
        topics: Sequence[str],
        directory: Path,
        *,
        patience_s: float = WAIT_S,
    ) -> None:
        super().__init__(directory, patience_s=patience_s)
        self.bootstrap = bootstrap
        self.name = name
        self.topics = tuple(topics)
        self.produced: set[Place] = set()
        self.deliveries: dict[Place, list[tuple[str, int]]] = defaultdict(list)
        self.done: dict[Place, tuple[str, int]] = {}  # the member's name, and the delivery
        self.has_lost_counts = False  # a broker has ended
        self._producer = Producer({"bootstrap.servers": bootstrap, **QUICK_RETRIES})
        self.configure(
            {"share.auto.offset.reset": "earliest", "share.record.lock.duration.ms": LOCK_MS}
        )

    def configure(self, configs: dict[str, object]) -> None:
        """Set configs of the group."""
        changes = [(config, _SET, str(value)) for config, value in configs.items()]
        host, _, port = self.bootstrap.split(",")[0].rpartition(":")
        with contextlib.closing(Requests((host, int(port)))) as requests:
            requests.alter(_GROUP, self.name, *changes)

    def start(self, client: ShareClient, name: str, *topics: str) -> ShareMember:
        """Start a member program without waiting until it joins."""
        subscribed = ",".join(topics or self.topics)
        arguments = [name, self.bootstrap, subscribed, self.name]
        return self.launch(ShareMember, name, [*client.command(), *arguments], {})

    def hold(self, member: ShareMember) -> list[Place]:
        """Let a member keep its next batch of new records without acknowledging it."""
        member.tell("hold")
        while not member.held:
            self.produce(1)
            self.wait(lambda: bool(member.held) or self.is_done(), "the records are delivered")
        return list(member.held)

    def decide(self, member: ShareMember, command: str) -> None:
        """Let a member accept, release or reject what it holds."""
        member.tell(command)
        self.wait(lambda: not member.held, f"{member.name} has acknowledged its records")

    def is_done(self) -> bool:
        """Return whether all records are acknowledged, except those that a member holds."""
        held = {place for member in self.members.values() for place in member.held}
        return self.produced - held <= set(self.done)

    def stop(self, member: ShareMember) -> None:
        super().stop(member)
        member.held.clear()  # others get them when their locks expire

    # Records

    def produce(self, count: int = 20, *, topic: str | None = None, partitions: int = 2) -> None:
        """Append records to each partition of a topic, in small batches."""
        errors: list[Any] = []

        def on_delivery(error: Any, message: Any) -> None:
            if error is not None:
                errors.append(error)
            else:
                place = (f"{message.topic()}-{message.partition()}", message.offset())
                self.produced.add(place)

        topic = topic or self.topics[0]
        self._producer.list_topics(topic, timeout=self.patience_s)  # it may have grown
        for number in range(count):
            for partition in range(partitions):
                self._producer.produce(
                    topic, b"%d" % number, partition=partition, on_delivery=on_delivery
                )
            if number % _BATCH == _BATCH - 1:
                assert self._producer.flush(self.patience_s) == 0
        assert self._producer.flush(self.patience_s) == 0
        assert not errors, errors

    def forget(self, topic: str) -> None:
        """Forget the records of a deleted topic."""
        names = {
            partition for partition, _ in self.produced if partition.rpartition("-")[0] == topic
        }
        self.produced = {place for place in self.produced if place[0] not in names}
        for place in [place for place in self.deliveries if place[0] in names]:
            del self.deliveries[place]
            self.done.pop(place, None)

    def wait_until_done(self) -> None:
        """Wait until all records are acknowledged, except those that a member holds."""
        self.wait(self.is_done, "every record is done")

    def check_single_deliveries(self, *, but: Sequence[Place] = ()) -> None:
        """Check that each record was delivered once.

        Args:
            but: Records that a member has lost or released.
        """
        more = {
            place: deliveries
            for place, deliveries in self.deliveries.items()
            if len(deliveries) != 1 and place not in but
        }
        assert not more, self.report(f"delivered more than once: {more}")

    def wait_until_all_is_delivered(self) -> None:
        """Wait until each record was delivered and the group's lag is 0.

        A broker that ends may have stored acknowledgements without responding.
        """
        self.wait(lambda: self.produced <= set(self.deliveries), "every record is delivered")
        partitions = sorted({partition for partition, _ in self.produced})

        def lags() -> dict[str, int]:
            self._read()
            return {partition: self._lag(partition) for partition in partitions}

        try:
            eventually(lambda: not any(lags().values()), timeout_s=self.patience_s, poll_s=0.5)
        except AssertionError as error:
            raise AssertionError(self.report(f"the lags are {lags()}")) from error

    def _lag(self, partition: str) -> int:
        """Return the number of records that are not done; -1 if no broker responds."""
        topic, _, number = partition.rpartition("-")
        topics = [{"topic_name": topic, "partitions": [int(number)]}]
        request = {"groups": [{"group_id": self.name, "topics": topics}]}
        for address in self.bootstrap.split(","):
            host, _, port = address.rpartition(":")
            with (
                contextlib.suppress(OSError),
                contextlib.closing(Requests((host, int(port)))) as requests,
            ):
                answer = requests.try_ask(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 1, request)
                for row in answer.groups[0].topics:
                    return int(row.partitions[0].lag)
        return -1

    # Events

    def take(self, event: dict[str, Any]) -> None:
        super().take(event)
        member = self.members[event["member"]]
        match event["event"]:
            case "acquired":
                self._acquire(member, (event["partition"], event["offset"]), event["delivery"])
            case "accepted" | "rejected":
                self._finish(member, (event["partition"], event["offset"]))
            case "holding":
                member.held = list(member.last_batch)
            case "released":
                member.end_batch()
            case "refused":
                member.refusals.append(event["error"])
                member.end_batch()

    def _acquire(self, member: ShareMember, place: Place, delivery: int) -> None:
        deliveries = self.deliveries[place]
        if not self.has_lost_counts:
            twice = [name for name, count in deliveries if count == delivery]
            assert not twice, self.report(
                f"delivery {delivery} of {place} is {member.name}'s and {twice[0]}'s"
            )
        deliveries.append((member.name, delivery))
        member.acquired[place] = delivery
        member.last_batch.append(place)
        self._check_end(place)

    def _finish(self, member: ShareMember, place: Place) -> None:
        delivery = member.acquired[place]
        member.end_batch()
        member.done += 1
        if place in self.done:
            name, other = self.done[place]
            assert delivery != other, self.report(f"{member.name} and {name} have done {place}")
            # Brokers ignore acknowledgements of records before the group's start, without an error.
            late = member if delivery < other else self.members.get(name)
            if late:
                late.ignored += 1
            if late is member:
                return
        self.done[place] = (member.name, delivery)
        self._check_end(place)

    def _check_end(self, place: Place) -> None:
        if place not in self.done:
            return
        _, last = self.done[place]
        later = [(name, count) for name, count in self.deliveries[place] if count > last]
        assert not later, self.report(f"{place} is done by {self.done[place]}, but also {later}")

    def describe(self) -> list[str]:
        missing = sorted(self.produced - set(self.done))
        counts = {
            member.name: (len(member.acquired), member.done) for member in self.members.values()
        }
        return [
            f"records acquired and done by each member: {counts}",
            f"{len(missing)} of {len(self.produced)} are not done: {missing[:20]}",
            f"their deliveries: {[(place, self.deliveries.get(place)) for place in missing[:20]]}",
        ]


@contextlib.contextmanager
def share_group_on(
    bootstrap: str, name: str, topics: Sequence[str], directory: Path, **options: Any
) -> Iterator[ShareGroup]:
    """Make a share group; the options are those of ShareGroup."""
    group = ShareGroup(bootstrap, name, topics, directory, **options)
    try:
        yield group
    finally:
        group.close()
