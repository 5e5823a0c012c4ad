"""Groups that change between the classic and the consumer protocol (KIP-848) while they read.

Members are replaced one by one, as in a rolling upgrade of an application, and back again. No
partition may be assigned to a member while another owns it; every record is consumed, and none
that was committed before its partition was assigned.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

import pytest

from compat_tests.groups.clients import (
    AIOKAFKA,
    CONFLUENT,
    FRANZ_GO,
    JAVA,
    KAFKA_PYTHON,
    KAFKAJS,
    KCAT,
    SARAMA,
    GroupClient,
)
from compat_tests.groups.group import Group, group_on
from compat_tests.support.raw_requests import Requests
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from compat_tests.conftest import StartBroker
    from tests.support.brokers.brokers import Broker

PATIENCE_S: Final = 120.0
SESSION_MS: Final = 20_000  # too long to expire on a busy machine
SETTINGS: Final = {
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "500",
    "offsets.topic.num.partitions": "2",
}
BROKER: Final = "broker-uniform"
# librdkafka's cooperative-sticky assignments have user data, which a migration would lose.
REFUSED: Final = "cooperative-sticky"
pytestmark = [pytest.mark.nightly, pytest.mark.timeout(900)]


def with_marks(*clients: GroupClient) -> Any:
    marks = [pytest.mark.java] if JAVA in clients else []
    return pytest.param(*clients, id="-".join(map(str, clients)), marks=marks)


@pytest.fixture
def group(start_broker: StartBroker, topic: str, tmp_path: Path) -> Iterator[Group]:
    broker: Broker = start_broker(SETTINGS)
    options = {"session_ms": SESSION_MS, "patience_s": PATIENCE_S, "exclusive": True}
    with group_on(broker.bootstrap, topic, tmp_path, **options) as new_group:
        yield new_group


def classic_assignor(client: GroupClient) -> str:
    return "range" if client in {CONFLUENT, KCAT} else client.assignors[0]


def type_of(group: Group) -> str:
    host, _, port = group.bootstrap.rpartition(":")
    with contextlib.closing(Requests((host, int(port)))) as requests:
        request: dict[str, Any] = {"states_filter": [], "types_filter": []}
        listed = requests.ask(ApiKey.LIST_GROUPS, 5, request).groups
    (found,) = (each.group_type for each in listed if each.group_id == group.name)
    return str(found).lower()


def is_consumed(group: Group, *clients: GroupClient) -> None:
    group.produce()
    group.wait_until_processed(and_committed=all(client.commits_soon for client in clients))


@pytest.mark.shows("consumer protocol")
@pytest.mark.parametrize("client", [with_marks(each) for each in (CONFLUENT, FRANZ_GO, JAVA)])
def test_group_is_upgraded_and_downgraded_by_rolling_restarts(
    group: Group, client: GroupClient
) -> None:
    members = [group.start(client, name, classic_assignor(client)) for name in ("a", "b", "c")]
    group.wait_until_shared_by(*members)
    is_consumed(group)
    for assignor, during, after in (
        (BROKER, "consumer", "consumer"),
        (classic_assignor(client), "consumer", "classic"),
    ):
        for index, member in enumerate(tuple(members)):
            group.leave(member)
            group.produce()
            members[index] = group.start(client, member.name, assignor)
            group.wait_until_shared_by(*members)
            is_consumed(group)
            assert type_of(group) == (after if index == len(members) - 1 else during)


# @platformatic/kafka ends when its generation is out of date, with either broker.
@pytest.mark.parametrize(
    ("old", "new"),
    [
        with_marks(KAFKA_PYTHON, CONFLUENT),
        with_marks(AIOKAFKA, FRANZ_GO),
        with_marks(SARAMA, CONFLUENT),
        with_marks(KCAT, CONFLUENT),
        with_marks(KAFKAJS, CONFLUENT),
        with_marks(CONFLUENT, JAVA),
        with_marks(JAVA, FRANZ_GO),
    ],
)
def test_classic_members_share_a_group_with_members_of_the_consumer_protocol(
    group: Group, old: GroupClient, new: GroupClient
) -> None:
    first, second = (group.start(old, name, classic_assignor(old)) for name in ("a", "b"))
    group.wait_until_shared_by(first, second)
    is_consumed(group, old)
    third = group.start(new, "c", BROKER)
    group.wait_until_shared_by(first, second, third)
    assert type_of(group) == "consumer"
    is_consumed(group, old)
    group.leave(first)
    group.wait_until_shared_by(second, third)
    is_consumed(group, old)
    group.leave(third)  # the last one of the consumer protocol
    group.wait_until_shared_by(second)
    assert type_of(group) == "classic"
    is_consumed(group, old)


def test_assignments_with_user_data_are_not_upgraded(group: Group) -> None:
    members = [group.start(CONFLUENT, name, REFUSED) for name in ("a", "b")]
    group.wait_until_shared_by(*members)
    is_consumed(group)
    refused = group.start(CONFLUENT, "c", BROKER)
    group.wait(lambda: bool(refused.complaints), "the new member is refused")
    assert "The group id does not exist" in refused.complaints[0]
    assert type_of(group) == "classic"
    is_consumed(group)
    group.wait_until_shared_by(*members)
