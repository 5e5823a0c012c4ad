"""Groups of several clients, groups that change their assignor, and Java's tools on a group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from compat_tests.clients import java
from compat_tests.groups.clients import (
    AIOKAFKA,
    CONFLUENT,
    FRANZ_GO,
    JAVA,
    KAFKA_PYTHON,
    KCAT,
    SARAMA,
    GroupClient,
)

if TYPE_CHECKING:
    from compat_tests.groups.group import Group

_TOOLS = "org.apache.kafka.tools"
CONSUMER_PERFORMANCE = f"{_TOOLS}.ConsumerPerformance"
CONSUMER_GROUPS = f"{_TOOLS}.consumer.group.ConsumerGroupCommand"


def mixture(*clients: GroupClient, run: pytest.MarkDecorator) -> Any:
    return pytest.param(clients, id="-".join(map(str, clients)), marks=[pytest.mark.java, run])


@pytest.mark.parametrize(
    "clients",
    [
        mixture(CONFLUENT, KAFKA_PYTHON, JAVA, run=pytest.mark.long),
        mixture(AIOKAFKA, FRANZ_GO, KCAT, run=pytest.mark.nightly),
        mixture(SARAMA, JAVA, AIOKAFKA, run=pytest.mark.nightly),
    ],
)
def test_different_clients_share_one_group(group: Group, clients: tuple[GroupClient, ...]) -> None:
    members = [group.start(client, str(client), "range") for client in clients]
    group.wait_until_shared_by(*members)
    group.produce()
    group.wait_until_processed(and_committed=KCAT not in clients)
    while len(members) > 1:  # so that each member leads the group, and one stays alone
        group.leave(members.pop(0))
        group.produce()
        group.wait_until_shared_by(*members)
        group.wait_until_processed(and_committed=KCAT not in clients)


@pytest.mark.parametrize(
    "client",
    [
        pytest.param(JAVA, id="java", marks=[pytest.mark.java, pytest.mark.long]),
        pytest.param(FRANZ_GO, id="franz-go", marks=pytest.mark.nightly),
    ],
)
def test_group_changes_from_eager_to_cooperative_by_rolling_restart(
    group: Group, client: GroupClient
) -> None:
    members = [group.start(client, name, "range") for name in ("a", "b")]
    group.wait_until_shared_by(*members)
    group.produce()
    group.wait_until_processed()
    for assignors in ("cooperative-sticky,range", "cooperative-sticky"):
        for index, name in enumerate(("a", "b")):
            group.leave(members[index])
            group.produce()
            members[index] = group.start(client, name, assignors)
            group.wait_until_shared_by(*members)
            group.wait_until_processed()


@pytest.mark.java
def test_java_tools_read_describe_reset_and_delete_a_group(group: Group) -> None:
    group.produce(1000)
    count = sum(group.ends.values())
    of_group = ["--group", group.name]
    printed = java.run(
        group.bootstrap,
        CONSUMER_PERFORMANCE,
        *("--topic", group.topic, *of_group, "--num-records", str(count), "--hide-header"),
        *("--timeout", "30000"),
    )
    assert f", {count}, " in printed
    assert group.fetch_committed() == group.ends

    assert group.name in java.run(group.bootstrap, CONSUMER_GROUPS, "--list").split()
    group.produce(1)
    printed = java.run(group.bootstrap, CONSUMER_GROUPS, "--describe", *of_group)
    rows = [line.split() for line in printed.splitlines() if line.startswith(group.name)]
    # group, topic, partition, committed offset, log end, lag
    assert sorted(row[1:6] for row in rows) == [
        [group.topic, str(p), str(end - 1), str(end), "1"] for p, end in group.ends.items()
    ]

    member = group.start(CONFLUENT, "one", "range")
    group.wait_until_shared_by(member)
    printed = java.run(group.bootstrap, CONSUMER_GROUPS, "--describe", *of_group, "--state")
    assert " Stable " in printed
    _, printed = java.attempt(group.bootstrap, CONSUMER_GROUPS, "--delete", *of_group)
    assert "GroupNotEmptyException" in printed
    group.leave(member)

    reset_options = ["--all-topics", "--to-offset", "7", "--execute"]
    java.run(group.bootstrap, CONSUMER_GROUPS, "--reset-offsets", *of_group, *reset_options)
    printed = java.run(group.bootstrap, CONSUMER_GROUPS, "--describe", *of_group)
    rows = [line.split() for line in printed.splitlines() if line.startswith(group.name)]
    assert {row[3] for row in rows} == {"7"}

    java.run(group.bootstrap, CONSUMER_GROUPS, "--delete", *of_group)
    assert group.name not in java.run(group.bootstrap, CONSUMER_GROUPS, "--list").split()
