"""Verbs for ACLs, share groups and elections against an Apache Kafka with an authorizer."""

from __future__ import annotations

import asyncio
import random
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from compat_tests.conftest import new_topic_name
from tests.support.brokers.brokers import AUTHORIZED, make_broker
from tests.support.cli.verbs import Verbs
from tests.support.tools.waiting import eventually
from wirebroker.base.clock import SystemClock
from wirebroker.client.addresses import addresses_of
from wirebroker.client.kafka_client import KafkaClient
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.net.client.tcp_dialer import TcpDialer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.brokers.brokers import Broker

pytestmark = pytest.mark.java


@pytest.fixture(scope="module")
def apache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with make_broker("apache", tmp_path_factory.mktemp("broker"), AUTHORIZED) as running:
        yield running


@pytest.fixture
def verbs(apache: Broker, capsys: pytest.CaptureFixture[str]) -> Verbs:
    return Verbs(apache.bootstrap, capsys)


def names(rows: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return [(row["principal"], row["operation"], row["resource_name"]) for row in rows]


def test_acls_are_created_listed_and_deleted(verbs: Verbs) -> None:
    topic = new_topic_name()
    principals = ("--allow", "User:a", "--deny", "User:b")
    verbs.do(
        "acl",
        "create",
        *principals,
        "--operation",
        "read",
        "--operation",
        "WRITE",
        "--topic",
        topic,
    )
    prefix = ("--group", topic[:3], "--prefixed", "--host", "127.0.0.1")
    verbs.do("acl", "create", "--allow", "User:a", "--operation", "read", *prefix)
    verbs.do("acl", "create", "--allow", "User:a", "--operation", "describe", "--cluster")
    eventually(lambda: len(verbs.json("acl", "list", "--principal", "User:a")) == 4)
    assert names(verbs.json("acl", "list", "--topic", topic)) == [
        ("User:a", "read", topic),
        ("User:a", "write", topic),
        ("User:b", "read", topic),
        ("User:b", "write", topic),
    ]
    assert verbs.json("acl", "list", "--group", topic) == []
    (rule,) = verbs.json("acl", "list", "--group", topic, "--matching")
    assert rule == {
        "resource_type": "group",
        "resource_name": topic[:3],
        "pattern_type": "prefixed",
        "principal": "User:a",
        "host": "127.0.0.1",
        "operation": "read",
        "permission": "allow",
    }
    assert len(verbs.json("acl", "list", "--permission", "deny", "--topic", topic)) == 2
    preview = verbs.do("acl", "delete", "--topic", topic, "--operation", "read")
    assert "nothing is changed" in preview.err
    assert len(verbs.json("acl", "list", "--topic", topic)) == 4
    verbs.do("acl", "delete", "--topic", topic, "--operation", "read", "--yes")
    eventually(lambda: len(verbs.json("acl", "list", "--topic", topic)) == 2)
    verbs.do("acl", "delete", "--principal", "User:a", "--yes")
    verbs.do("acl", "delete", "--principal", "User:b", "--yes")
    eventually(lambda: verbs.json("acl", "list") == [])
    refused = verbs.run("acl", "create", "--allow", "a", "--operation", "read", "--topic", topic)
    assert refused.status == 1
    assert "INVALID_REQUEST" in refused.err


async def join_share_group(bootstrap: str, group: str, topic: str) -> Any:
    async with KafkaClient(
        addresses_of(bootstrap),
        timeout_s=30,
        dialer=TcpDialer(),
        clock=SystemClock(),
        random=random.Random(1),
        client_id="sharer",
    ) as client:
        body = {
            "group_id": group,
            "member_id": str(uuid.uuid4()),
            "member_epoch": 0,
            "subscribed_topic_names": [topic],
        }
        return await client.request_of_coordinator(
            group,
            ApiKey.SHARE_GROUP_HEARTBEAT,
            body,
            error_of=lambda answer: int(answer.error_code),
        )


def test_share_groups_are_listed_and_described(verbs: Verbs) -> None:
    topic = new_topic_name()
    verbs.do("topic", "create", topic, "-p", "2")
    joined = asyncio.run(join_share_group(verbs.bootstrap, topic, topic))
    assert joined.error_code == 0, joined
    assert topic in [group["name"] for group in verbs.json("share", "list")]
    (described,) = verbs.json("share", "describe", topic)
    assert described["state"] == "Stable"
    assert [member["client_id"] for member in described["members"]] == ["sharer"]
    assert f"{topic}  Stable" in verbs.do("share", "describe", topic).out
    eventually(lambda: len(verbs.json("share", "describe", topic)[0]["partitions"]) == 2)
    missing = verbs.run("share", "describe", f"{topic}x")
    assert missing.status == 1
    assert f"did you mean {topic}?" in missing.err


def test_share_group_is_moved_read_and_deleted(verbs: Verbs) -> None:
    topic = group = new_topic_name()
    verbs.do("topic", "create", topic, "-p", "1")
    verbs.feed(b"0\n1\n2\n3\n", "produce", topic)
    preview = verbs.do("share", "seek", group, "-t", topic, "--to", "start")
    assert "nothing is changed" in preview.err
    assert group not in [row["name"] for row in verbs.json("share", "list")]
    moved = verbs.json("share", "seek", group, "-t", topic, "--to", "1", "--yes")
    assert moved["partitions"] == [{"topic": topic, "partition": 0, "start": None, "goal": 1}]
    consume = ("share", "consume", topic, "-g", group, "-f", r"%p %o %s\n")
    assert verbs.do(*consume, "-n", "1", "--acknowledge", "reject").lines == ["0 1 1"]
    assert verbs.do(*consume, "-n", "1", "--acknowledge", "release").lines == ["0 2 2"]
    assert verbs.do(*consume, "-n", "2").lines == ["0 2 2", "0 3 3"]
    assert verbs.do(*consume, "--idle", "1").lines == []
    (described,) = verbs.json("share", "describe", group)
    (progress,) = described["partitions"]
    # Kafka moves the start of what it has stored only now and then.
    assert (progress["topic"], progress["partition"], progress["lag"]) == (topic, 0, 0)
    assert 2 <= progress["start"] <= 4
    (of_any_kind,) = verbs.json("group", "describe", group)
    assert (of_any_kind["kind"], of_any_kind["state"]) == ("share", "Empty")
    assert [row["committed"] for row in of_any_kind["partitions"]] == [progress["start"]]
    assert [row["lag"] for row in verbs.json("group", "lag", group)] == [0]
    assert "use `wirebroker share seek`" in verbs.run("group", "seek", group, "--to", "end").err
    moved = verbs.json("share", "seek", group, "--to-time", "0", "--yes")
    assert [row["goal"] for row in moved["partitions"]] == [0]
    assert "would be deleted" in verbs.do("share", "delete", group).err
    assert verbs.json("share", "delete", group, "--yes") == {"deleted": [group]}
    assert verbs.run("share", "delete", group, "--yes").status == 1


def test_share_group_with_members_is_neither_moved_nor_deleted(verbs: Verbs) -> None:
    topic = group = new_topic_name()
    verbs.do("topic", "create", topic, "-p", "1")
    assert asyncio.run(join_share_group(verbs.bootstrap, group, topic)).error_code == 0
    for flags in ((), ("--yes",)):
        moved = verbs.run("share", "seek", group, "-t", topic, "--to", "end", *flags)
        deleted = verbs.run("share", "delete", group, *flags)
        for refused in (moved, deleted):
            assert refused.status == 1
            assert "NON_EMPTY_GROUP" in refused.err
    assert verbs.json("group", "describe", group)[0]["members"][0]["client_id"] == "sharer"


def test_leaders_are_elected(verbs: Verbs) -> None:
    topic = new_topic_name()
    verbs.do("topic", "create", topic, "-p", "2")
    elections = verbs.json("elect", "preferred", topic, "-p", "1")
    assert elections == [{"topic": topic, "partition": 1, "elected": False, "message": None}]
    assert verbs.do("elect", "preferred").lines == ["every leader is the preferred one"]
    assert verbs.json("elect", "unclean", topic) == {"would_elect": []}
    assert verbs.json("elect", "unclean", topic, "--yes") == []
    assert "there is no topic" in verbs.run("elect", "preferred", f"{topic}x").err
