"""Share groups with every client that has them: joins, leaves, kills, suspensions, restarts.

The group checks each delivery and acknowledgement, see share_group.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from compat_tests.groups.clients import SHARE_CONFLUENT, SHARE_FRANZ_GO, SHARE_JAVA, ShareClient
from compat_tests.groups.share_group import ShareGroup, share_group_on
from compat_tests.support import topics

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from compat_tests.conftest import StartBroker
    from tests.support.brokers.brokers import Broker

PATIENCE_S: Final = 90.0
SHORT_LOCK_MS: Final = 2_000
SETTINGS: Final = {
    "auto.create.topics.enable": "false",
    "group.share.min.session.timeout.ms": "1000",
    "group.share.session.timeout.ms": "5000",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.heartbeat.interval.ms": "500",
    "group.share.min.record.lock.duration.ms": "1000",
    "share.coordinator.state.topic.num.partitions": "2",
    "offsets.topic.num.partitions": "2",
}
CLIENTS: Final[list[Any]] = [
    pytest.param(SHARE_CONFLUENT, id="confluent-kafka", marks=pytest.mark.nightly),
    pytest.param(SHARE_FRANZ_GO, id="franz-go", marks=pytest.mark.nightly),
    pytest.param(SHARE_JAVA, id="java", marks=[pytest.mark.java, pytest.mark.nightly]),
]
pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def share_broker(start_broker: StartBroker) -> Broker:
    return start_broker(SETTINGS)


@pytest.fixture
def share_group(share_broker: Broker, topic: str, tmp_path: Path) -> Iterator[ShareGroup]:
    """Return a group without members, on a topic of two partitions without records."""
    bootstrap, name = share_broker.bootstrap, f"share-{topic}"
    topics.create(bootstrap, topic, partitions=2)
    with share_group_on(bootstrap, name, [topic], tmp_path, patience_s=PATIENCE_S) as group:
        yield group


@pytest.mark.shows("share groups")
@pytest.mark.parametrize("client", CLIENTS)
def test_records_are_delivered_once_until_a_member_loses_them(
    share_group: ShareGroup, client: ShareClient
) -> None:
    group = share_group
    first, second, third = (group.start(client, name) for name in ("a", "b", "c"))
    group.produce()
    group.wait_until_done()
    group.check_single_deliveries()

    lost = group.hold(second)
    group.leave(second)
    group.produce()
    group.wait_until_done()
    lost += group.hold(third)
    group.kill9(third)
    fourth = group.start(client, "d")
    group.produce()
    group.wait_until_done()
    lost += group.hold(first)
    group.decide(first, "release")
    group.wait_until_done()
    rejected = group.hold(fourth)
    group.decide(fourth, "reject")
    group.produce()
    group.wait_until_done()
    assert {group.done[place] for place in rejected} == {("d", 1)}
    group.check_single_deliveries(but=lost)
    for place in lost:
        assert [count for _, count in group.deliveries[place]][:2] == [1, 2]


@pytest.mark.parametrize("client", CLIENTS)
def test_suspended_member_loses_its_records_when_their_locks_expire(
    share_group: ShareGroup, client: ShareClient
) -> None:
    group = share_group
    group.configure({"share.record.lock.duration.ms": SHORT_LOCK_MS})
    first, second = (group.start(client, name) for name in ("a", "b"))
    group.produce()
    group.wait_until_done()
    held = group.hold(first)
    group.stop(first)
    group.produce()
    group.wait_until_done()
    assert {group.done[place][0] for place in held} == {"b"}
    group.resume(first)
    first.tell("accept")
    group.wait(
        lambda: bool(first.refusals) or first.ignored > 0,
        "its acknowledgements are refused or ignored",
    )
    group.leave(second)
    group.produce()
    group.wait_until_done()


@pytest.mark.parametrize("client", CLIENTS)
def test_every_record_is_delivered_while_the_broker_is_killed_and_stopped(
    share_broker: Broker, share_group: ShareGroup, client: ShareClient
) -> None:
    group = share_group
    members = [group.start(client, name) for name in ("a", "b")]
    group.produce()
    group.wait_until_done()
    group.hold(members[0])
    group.has_lost_counts = True
    share_broker.kill9()
    share_broker.start()
    members[0].tell("accept")
    group.produce()
    group.wait_until_all_is_delivered()
    group.produce()
    share_broker.stop()
    share_broker.start()
    group.produce()
    group.wait_until_all_is_delivered()


@pytest.mark.parametrize("client", CLIENTS)
def test_new_grown_and_recreated_topics_are_delivered(
    share_broker: Broker, share_group: ShareGroup, client: ShareClient, topic: str
) -> None:
    bootstrap, later = share_broker.bootstrap, f"{topic}-later"
    group = share_group
    members = [group.start(client, name, topic, later) for name in ("a", "b")]
    group.produce()
    group.wait_until_done()
    topics.create(bootstrap, later, partitions=2)
    group.produce(topic=later)
    group.wait_until_done()
    topics.grow(bootstrap, topic, partitions=4)
    group.produce(partitions=4)
    group.wait_until_done()
    group.check_single_deliveries()

    topics.delete(bootstrap, later)
    group.forget(later)
    if client.follows_recreated_topics:
        topics.create(bootstrap, later, partitions=1)
        group.produce(topic=later, partitions=1)
    group.produce(partitions=4)
    group.wait_until_done()
    for member in members:
        group.leave(member)
