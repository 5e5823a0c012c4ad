"""Members with a group.instance.id regain their assignments without a rebalance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compat_tests.groups.clients import CLIENTS, CONFLUENT, JAVA, GroupClient
from compat_tests.groups.group import group_on
from compat_tests.groups.parameters import clients

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from compat_tests.groups.group import Group
    from tests.support.brokers.brokers import Broker

STATIC = [client for client in CLIENTS if client.has_static_members]
# Longer than a restart on a busy machine; nothing here waits for it.
SESSION_MS = 20_000


@pytest.fixture
def group(group_broker: Broker, topic: str, tmp_path: Path) -> Iterator[Group]:
    with group_on(group_broker.bootstrap, topic, tmp_path, session_ms=SESSION_MS) as new_group:
        yield new_group


@pytest.mark.parametrize("client", clients(STATIC, quick={CONFLUENT}))
def test_restarted_static_members_keep_partitions_without_rebalance(
    group: Group, client: GroupClient
) -> None:
    assignor = client.assignors[-1]
    members = [group.start(client, name, assignor, instance_id=name) for name in ("a", "b", "c")]
    group.wait_until_shared_by(*members)
    group.produce()
    group.wait_until_processed(and_committed=client.commits_soon)
    for index in range(3):  # one of them leads the group
        owned, rebalances = members[index].owned, [member.rebalances for member in members]
        group.kill9(members[index])
        group.produce()
        name = members[index].name
        members[index] = group.start(client, name, assignor, instance_id=name)
        group.wait_until_shared_by(*members)
        group.wait_until_processed(and_committed=client.commits_soon)
        assert members[index].owned == owned
        rebalances[index] = 1
        assert [member.rebalances for member in members] == rebalances


# When kafka-python's leader closes, it sometimes sends another JoinGroup: a rebalance.
@pytest.mark.parametrize("client", clients([CONFLUENT, JAVA], quick={CONFLUENT}))
def test_closed_static_member_stays_in_group_until_it_returns(
    group: Group, client: GroupClient
) -> None:
    members = [group.start(client, name, "range", instance_id=name) for name in ("a", "b")]
    group.wait_until_shared_by(*members)
    group.produce()
    group.wait_until_processed()
    first, second = members
    owned, rebalances = set(first.owned), second.rebalances
    group.leave(first)  # with an instance id, these clients send no LeaveGroup
    group.produce()
    first = group.start(client, "a", "range", instance_id="a")
    group.wait_until_shared_by(first, second)
    group.wait_until_processed()
    assert first.owned == owned
    assert second.rebalances == rebalances


# others do not report it to the application
@pytest.mark.parametrize("client", clients([CONFLUENT, JAVA], quick={CONFLUENT}))
def test_second_process_with_same_instance_id_replaces_first(
    group: Group, client: GroupClient
) -> None:
    first = group.start(client, "first", "range", instance_id="same")
    other = group.start(client, "other", "range", instance_id="another")
    group.wait_until_shared_by(first, other)
    rebalances = other.rebalances
    second = group.start(client, "second", "range", instance_id="same")
    group.wait_until_shared_by(second, other)
    group.wait(lambda: bool(first.complaints), "the first receives that it was fenced")
    assert "fenced" in first.complaints[0].lower()
    assert other.rebalances == rebalances
    group.kill9(first)
    group.produce()
    group.wait_until_processed()
