"""Groups with changing members, topics and subscriptions, and members that stop polling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupState, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from compat_tests.clients.message import WAIT_S
from compat_tests.conftest import new_topic_name
from compat_tests.groups import hosts
from compat_tests.groups.hosts import SESSION_MS, Host, Hosted
from compat_tests.support import topics
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.brokers.brokers import Broker

# The session timeout is librdkafka's minimum.
SHORT_POLL_INTERVAL_MS = SESSION_MS


def _with(
    command: Callable[[], list[str]], assignor: str, *more_marks: pytest.MarkDecorator
) -> Any:
    client = "java" if command is hosts.java_command else "confluent-kafka"
    marks = [*more_marks, *([pytest.mark.java] if client == "java" else [])]
    return pytest.param(command, assignor, id=f"{client}-{assignor}", marks=marks)


CLIENTS = [
    _with(hosts.confluent_command, "range"),
    _with(hosts.confluent_command, "cooperative-sticky"),
    _with(hosts.java_command, "range", pytest.mark.nightly),
    _with(hosts.java_command, "cooperative-sticky"),
]
# Members of the consumer protocol (KIP-848).
CLIENTS += [
    _with(hosts.confluent_command, "broker-uniform"),
    _with(hosts.java_command, "broker-uniform", pytest.mark.nightly),
]
OF_THE_BROKER = [
    _with(hosts.confluent_command, "broker-uniform", pytest.mark.nightly),
    _with(hosts.java_command, "broker-uniform", pytest.mark.nightly),
]
WITH_PATTERNS = [
    _with(hosts.confluent_command, "broker-uniform", pytest.mark.nightly),
    _with(hosts.java_command, "broker-uniform"),
]
with_clients = pytest.mark.parametrize(("host", "assignor"), CLIENTS, indirect=["host"])


@pytest.fixture(scope="module")
def host(
    group_broker: Broker,
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Host]:
    command: Callable[[], list[str]] = request.param
    errors = tmp_path_factory.mktemp("host") / "stderr"
    new_host = Host(command(), group_broker.bootstrap, errors)
    yield new_host
    new_host.close()


@pytest.fixture
def group() -> str:
    return f"group-{new_topic_name()}"


def partitions_of(topic: str, *numbers: int) -> set[str]:
    return {f"{topic}-{number}" for number in numbers}


def produce(host: Host, topic: str, *numbers: int, count: int = 3) -> None:
    producer = Producer({"bootstrap.servers": host.bootstrap, "linger.ms": 5})
    for partition in numbers:
        for number in range(count):
            producer.produce(topic, b"%d" % number, partition=partition)
    assert producer.flush(WAIT_S) == 0


def committed(host: Host, group: str, topic: str, partitions: int) -> list[int]:
    """Return a group's committed offsets of a topic, 0 by default."""
    consumer = Consumer({"bootstrap.servers": host.bootstrap, "group.id": group})
    try:
        topic_partitions = [TopicPartition(topic, number) for number in range(partitions)]
        return [
            max(0, topic_partition.offset)
            for topic_partition in consumer.committed(topic_partitions, timeout=WAIT_S)
        ]
    finally:
        consumer.close()


def wait_until_owned(host: Host, expected: dict[Hosted, set[str]]) -> None:
    host.wait(
        lambda: all(member.owned == owned for member, owned in expected.items()),
        f"these own { {member.name: sorted(owned) for member, owned in expected.items()} }",
    )


def wait_until_shared(host: Host, members: list[Hosted], partitions: set[str]) -> None:
    fair_counts = {len(partitions) // len(members), -(-len(partitions) // len(members))}

    def is_shared() -> bool:
        owned = [partition for member in members for partition in member.owned]
        return sorted(owned) == sorted(partitions) and fair_counts >= {
            len(member.owned) for member in members
        }

    host.wait(
        is_shared, f"{', '.join(member.name for member in members)} share {sorted(partitions)}"
    )


def wait_until_consumed(
    host: Host, members: list[Hosted], partitions: set[str], offsets: range
) -> None:
    """Wait until these members have consumed these offsets of each partition, at least once."""
    expected = {(partition, offset) for partition in partitions for offset in offsets}
    host.wait(
        lambda: expected <= {record for member in members for record in member.records},
        f"{offsets} of {sorted(partitions)} are consumed",
    )


# After a cooperative change librdkafka sometimes never rejoins, with either broker.
@pytest.mark.parametrize(("host", "assignor"), [CLIENTS[0], *CLIENTS[2:]], indirect=["host"])
def test_changed_subscriptions_change_assigned_partitions(
    host: Host, group: str, topic: str, assignor: str
) -> None:
    other = new_topic_name()
    for topic_name in (topic, other):
        topics.create(host.bootstrap, topic_name, partitions=2)
    first, second = (host.open(group, assignor) for _ in range(2))
    first.subscribe(topic)
    second.subscribe(other)
    topic_partitions, other_partitions = partitions_of(topic, 0, 1), partitions_of(other, 0, 1)
    wait_until_owned(host, {first: topic_partitions, second: other_partitions})
    for topic_name in (topic, other):
        produce(host, topic_name, 0, 1)
    wait_until_consumed(host, [first], topic_partitions, range(3))
    wait_until_consumed(host, [second], other_partitions, range(3))

    first.subscribe(other)  # no member subscribes to the first topic now
    wait_until_shared(host, [first, second], other_partitions)
    for topic_name in (topic, other):
        produce(host, topic_name, 0, 1)
    wait_until_consumed(host, [first, second], other_partitions, range(3, 6))

    second.subscribe(topic, other)
    host.wait(
        lambda: (
            first.owned | second.owned == topic_partitions | other_partitions
            and topic_partitions <= second.owned
        ),
        "the second has the first topic, the other is shared",
    )
    assert not first.owned & second.owned
    wait_until_consumed(host, [second], topic_partitions, range(3, 6))
    # The first member committed its consumed offsets before it changed topics.
    assert min(offset for partition, offset in second.records if partition in topic_partitions) == 3

    first.close()
    second.close()
    assert committed(host, group, topic, 2) == committed(host, group, other, 2) == [6, 6]


@pytest.mark.parametrize(("host", "assignor"), WITH_PATTERNS, indirect=["host"])
def test_matching_topics_are_read_from_their_start(
    host: Host, group: str, topic: str, assignor: str
) -> None:
    other = f"{topic}-other"
    topics.create(host.bootstrap, topic, partitions=2)
    members = [host.open(group, assignor) for _ in range(2)]
    for member in members:
        member.subscribe(f"^{topic}(-.*)?")
    wait_until_shared(host, members, partitions_of(topic, 0, 1))
    produce(host, topic, 0, 1)
    wait_until_consumed(host, members, partitions_of(topic, 0, 1), range(3))

    # The broker searches new topics at most every ten seconds.
    topics.create(host.bootstrap, other, partitions=2)
    produce(host, other, 0, 1)
    wait_until_shared(host, members, partitions_of(topic, 0, 1) | partitions_of(other, 0, 1))
    wait_until_consumed(host, members, partitions_of(other, 0, 1), range(3))

    for member in members:
        member.close()
    assert committed(host, group, topic, 2) == committed(host, group, other, 2) == [3, 3]


@with_clients
def test_added_partitions_are_read_from_their_start(
    host: Host, group: str, topic: str, assignor: str
) -> None:
    topics.create(host.bootstrap, topic, partitions=2)
    members = [host.open(group, assignor) for _ in range(2)]
    for member in members:
        member.subscribe(topic)
    wait_until_shared(host, members, partitions_of(topic, 0, 1))
    produce(host, topic, 0, 1)
    wait_until_consumed(host, members, partitions_of(topic, 0, 1), range(3))

    admin = AdminClient({"bootstrap.servers": host.bootstrap})
    admin.create_partitions([NewPartitions(topic, 5)])[topic].result(WAIT_S)
    all_partitions = partitions_of(topic, *range(5))
    produce(host, topic, *range(5))
    wait_until_shared(host, members, all_partitions)
    wait_until_consumed(host, members, partitions_of(topic, 0, 1), range(3, 6))
    wait_until_consumed(host, members, partitions_of(topic, 2, 3, 4), range(3))

    for member in members:
        member.close()
    assert committed(host, group, topic, 5) == [6, 6, 3, 3, 3]


@pytest.mark.parametrize(("host", "assignor"), OF_THE_BROKER, indirect=["host"])
def test_new_and_recreated_topics_are_read_from_their_start(
    host: Host, group: str, topic: str, assignor: str
) -> None:
    later = f"{topic}-later"
    topics.create(host.bootstrap, topic, partitions=2)
    members = [host.open(group, assignor) for _ in range(2)]
    for member in members:
        member.subscribe(topic, later)
    wait_until_shared(host, members, partitions_of(topic, 0, 1))
    for count in (3, 5):
        topics.create(host.bootstrap, later, partitions=2)
        produce(host, later, 0, 1, count=count)
        wait_until_shared(host, members, partitions_of(topic, 0, 1) | partitions_of(later, 0, 1))
        wait_until_consumed(host, members, partitions_of(later, 0, 1), range(count))
        topics.delete(host.bootstrap, later)
        wait_until_shared(host, members, partitions_of(topic, 0, 1))
        for member in members:
            member.records.clear()
    produce(host, topic, 0, 1)
    wait_until_consumed(host, members, partitions_of(topic, 0, 1), range(3))
    for member in members:
        member.close()
    assert committed(host, group, topic, 2) == [3, 3]


@with_clients
def test_surplus_members_idle_until_a_partition_is_free(
    host: Host, group: str, topic: str, assignor: str
) -> None:
    topics.create(host.bootstrap, topic, partitions=2)
    members = [host.open(group, assignor) for _ in range(4)]
    for member in members:
        member.subscribe(topic)
    host.wait(
        lambda: sorted(len(member.owned) for member in members) == [0, 0, 1, 1],
        "two of four have a partition each",
    )
    admin = AdminClient({"bootstrap.servers": host.bootstrap})

    def is_described() -> bool:
        described = admin.describe_consumer_groups([group])[group].result(WAIT_S)
        assigned = [len(member.assignment.topic_partitions) for member in described.members]
        is_stable = described.state is ConsumerGroupState.STABLE
        return is_stable and sorted(assigned) == [0, 0, 1, 1]

    eventually(is_described, timeout_s=WAIT_S, poll_s=0.1)
    produce(host, topic, 0, 1)
    wait_until_consumed(host, members, partitions_of(topic, 0, 1), range(3))

    idle = [member for member in members if not member.owned]
    for leaving in [member for member in members if member.owned]:
        leaving.close()
    wait_until_shared(host, idle, partitions_of(topic, 0, 1))
    produce(host, topic, 0, 1)
    wait_until_consumed(host, idle, partitions_of(topic, 0, 1), range(3, 6))
    assert min(offset for member in idle for _, offset in member.records) == 3
    for member in idle:
        member.close()
    assert committed(host, group, topic, 2) == [6, 6]


@with_clients
def test_member_without_polls_loses_partitions_and_rejoins(
    host: Host, group: str, topic: str, assignor: str
) -> None:
    topics.create(host.bootstrap, topic, partitions=4)
    all_partitions = partitions_of(topic, *range(4))
    stalling, other = (
        host.open(group, assignor, max_poll_interval_ms=SHORT_POLL_INTERVAL_MS) for _ in range(2)
    )
    for member in (stalling, other):
        member.subscribe(topic)
    wait_until_shared(host, [stalling, other], all_partitions)
    produce(host, topic, *range(4))
    wait_until_consumed(host, [stalling, other], all_partitions, range(3))

    stalling.stall()
    before = set(stalling.owned)
    stalling.released.clear()
    # This rebalance waits for the member that does not poll, up to the timeout.
    joining = host.open(group, assignor, max_poll_interval_ms=SHORT_POLL_INTERVAL_MS)
    joining.subscribe(topic)
    produce(host, topic, *range(4))
    wait_until_shared(host, [other, joining], all_partitions)
    wait_until_consumed(host, [other, joining], all_partitions, range(3, 6))
    host.wait(lambda: committed(host, group, topic, 4) == [6] * 4, "all is committed")

    assert not stalling.complaints
    number = int(min(before).rpartition("-")[2])
    stalling.commit(topic, number, 4)
    host.wait(
        lambda: bool(stalling.complaints), "a commit by the one without partitions is refused"
    )
    assert not stalling.commits
    assert committed(host, group, topic, 4) == [6] * 4

    stalling.poll()
    wait_until_shared(host, [stalling, other, joining], all_partitions)
    assert stalling.released >= before
    produce(host, topic, *range(4))
    wait_until_consumed(host, [stalling, other, joining], all_partitions, range(6, 9))
    for member in (stalling, other, joining):
        member.close()
    assert committed(host, group, topic, 4) == [9] * 4
