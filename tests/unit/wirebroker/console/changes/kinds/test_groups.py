"""Offsets moved and deleted, members removed, groups deleted from the console."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.console.changes import made, prepared
from wirebroker.client.errors import ClientError
from wirebroker.client.groups.group_kinds import describe_any_group
from wirebroker.client.groups.group_membership import GroupMembership
from wirebroker.client.groups.groups import commit, committed_of, list_groups
from wirebroker.client.groups.share_offsets import share_starts_of
from wirebroker.client.topics.leaders import TopicPartition
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from wirebroker.console.model.collector import Collector

EVIL = "<script>alert(1)</script>\"'; rm -rf /"


@contextlib.asynccontextmanager
async def member_of(collector, group: str) -> AsyncIterator[GroupMembership]:
    membership = GroupMembership(collector.client, group, ["orders"])
    try:
        await membership.join()
        yield membership
    finally:
        membership.abort()


async def offsets_of(collector, group: str) -> list[int]:
    return list((await committed_of(collector.client, group)).values())


@pytest.mark.parametrize(
    ("to", "value", "goals", "summary"),
    [
        ("start", "", [0, 0], "to the start"),
        ("end", "", [5, 5], "to the end"),
        ("offset", 3, [3, 3], "to offset 3"),
        ("offset", 99, [5, 5], "to offset 99"),
        ("shift", 2, [4, 3], "to 2 records from there"),
        ("shift", -9, [0, 0], "to -9 records from there"),
        ("time", "1970-01-01T00:00:02", [1, 1], "to the time 1970-01-01T00:00:02"),
        ("time", "5w", [5, 5], "to the time 5w"),
    ],
)
async def test_offsets_are_moved(open_cluster, to, value, goals, summary):
    async with open_cluster() as c:
        plan = await prepared(c, "reset-offsets", group="billing", to=to, value=value)
        assert plan.summary == f"Move 2 offsets of group billing {summary}"
        # What moves by itself is in the notes.
        is_moving = to == "end" or value == "5w"
        moves = plan.notes if is_moving else plan.lines
        is_to_end = goals == [5, 5] and not is_moving
        shown = ["the end", "the end"] if is_to_end else goals
        assert [line.partition(" (")[0] for line in moves] == [
            f"orders-0: 2 → {shown[0]}",
            f"orders-1: 1 → {shown[1]}",
        ]
        if is_to_end:
            assert plan.notes[0] == "orders-0: 2 → 5 (3 records later)"
        assert await offsets_of(c, "billing") == [2, 1]
        assert await plan.apply() == "2 offsets of group billing moved"
        assert await offsets_of(c, "billing") == goals


async def test_offsets_of_chosen_partitions_are_moved_and_groups_created(open_cluster):
    async with open_cluster() as c:
        values = {"to": "start", "topics": "orders:1\ncopies:0,2\n"}
        plan = await prepared(c, "reset-offsets", group=EVIL, **values)
        assert [line.partition(":")[0] for line in plan.lines] == [
            "orders-1",
            "copies-0",
            "copies-2",
        ]
        assert "creates it" in plan.warnings[0]
        await plan.apply()
        assert len(await committed_of(c.client, EVIL)) == 3


async def test_the_start_of_a_share_group_is_moved(open_cluster):
    async with open_cluster() as c:
        plan = await prepared(c, "reset-offsets", group="workers", to="offset", value=2)
        assert " share seek " in plan.command
        await plan.apply()
        assert list((await share_starts_of(c.client, "workers")).values()) == [2, 2]


async def test_offsets_of_a_streams_group_are_moved_in_its_input_topics(open_cluster):
    async with open_cluster() as c:
        await streams_group(c, "app")
        plan = await prepared(c, "reset-offsets", group="app", to="end")
        assert [move.partition(" ")[0] for move in plan.notes] == ["orders-0:", "orders-1:"]
        assert "Only the input topics' offsets are moved" in plan.warnings[0]
        await plan.apply()
        assert await offsets_of(c, "app") == [3, 5, 5]
        with pytest.raises(ClientError, match="no committed offset of an input topic in copies-0"):
            await prepared(c, "reset-offsets", group="app", to="end", topics="copies")
        plan = await prepared(c, "delete-offsets", group="app", topics="orders:0")
        assert "kafka-streams-groups" in plan.command
        await plan.apply()
        assert await offsets_of(c, "app") == [3, 5]
        with pytest.raises(ClientError, match="it is a streams group"):
            await prepared(c, "remove-members", group="app")
        await made(c, "delete-group", group="app")


async def streams_group(collector: Collector, group: str) -> None:
    """Create a streams group without members, with offsets of an input topic and another one."""
    subtopology = {
        "subtopology_id": "0",
        "source_topics": ["orders"],
        "copartition_groups": [{"source_topics": [0]}],
    }
    tasks: dict[str, Any] = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
    joining = {
        "rebalance_timeout_ms": 60_000,
        "process_id": "p",
        "client_tags": [],
        "topology": {"epoch": 0, "subtopologies": [subtopology]},
        **tasks,
    }
    for epoch, fields in ((0, joining), (-1, tasks)):
        answer = await collector.client.request_of_coordinator(
            group,
            ApiKey.STREAMS_GROUP_HEARTBEAT,
            {"group_id": group, "member_id": "m", "member_epoch": epoch, **fields},
            error_of=lambda answer: int(answer.error_code),
        )
        assert answer.error_code == ErrorCode.NONE
    places = [TopicPartition(*place) for place in (("orders", 0), ("orders", 1), ("copies", 0))]
    await commit(collector.client, group, dict.fromkeys(places, 3))


async def test_groups_are_deleted(open_cluster):
    async with open_cluster() as c:
        plan = await prepared(c, "delete-group", group="billing")
        assert plan.lines == ("kind: classic", "committed offsets of 2 partitions are deleted")
        assert await plan.apply() == "group billing was deleted"
        await made(c, "delete-group", group="workers")
        assert await list_groups(c.client) == []


async def test_offsets_are_deleted(open_cluster):
    async with open_cluster() as c:
        plan = await prepared(c, "delete-offsets", group="billing", topics="orders:1")
        assert plan.lines == ("orders-1: 1 → no offset",)
        assert await plan.apply() == "1 offset of group billing deleted"
        assert list(await committed_of(c.client, "billing")) == [TopicPartition("orders", 0)]
        await made(c, "delete-offsets", group="workers", topics="orders")
        assert await share_starts_of(c.client, "workers") == {}


async def test_members_are_removed(open_cluster):
    async with open_cluster() as c, member_of(c, "readers"):
        plan = await prepared(c, "remove-members", group="readers")
        assert plan.summary == "Remove 1 member from group readers"
        assert "client wirebroker-console on 127.0.0.1" in plan.lines[0]
        assert await plan.apply() == "1 member removed from group readers"
        assert (await describe_any_group(c.client, "readers")).members == []
        with pytest.raises(ClientError, match="it has left"):
            await plan.apply()


async def test_a_group_with_members_refuses_changes(open_cluster):
    async with open_cluster() as c:
        reset = await prepared(c, "reset-offsets", group="billing", to="start")
        delete = await prepared(c, "delete-group", group="billing")
        offsets = await prepared(c, "delete-offsets", group="billing", topics="orders")
        async with member_of(c, "billing"):
            for plan in (reset, delete, offsets):
                with pytest.raises(ClientError, match="member"):
                    await plan.apply()
            for kind, values in (
                ("reset-offsets", {"to": "start"}),
                ("delete-group", {}),
            ):
                with pytest.raises(ClientError, match="the group has members"):
                    await prepared(c, kind, group="billing", **values)
        assert await offsets_of(c, "billing") == [2, 1]


async def test_a_plan_differs_after_the_group_has_moved(open_cluster):
    async with open_cluster() as c:
        plan = await prepared(c, "reset-offsets", group="billing", to="start")
        await commit(c.client, "billing", {TopicPartition("orders", 0): 4})
        later = await prepared(c, "reset-offsets", group="billing", to="start")
        assert later.lines[0].startswith("orders-0: 4 → 0")
        assert later.lines != plan.lines
