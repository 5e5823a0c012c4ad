"""Topics created, extended, emptied and deleted from the console."""

from __future__ import annotations

import json

import pytest

from tests.support.brokers.collectors import snapshot_when
from tests.support.console.changes import made, prepared, records_of
from wirebroker.base.clock import SystemClock
from wirebroker.client.changes.trimming import planned_trim
from wirebroker.client.configs.configs import TOPIC, configs_of
from wirebroker.client.errors import ClientError
from wirebroker.client.topics.leaders import partitions_of
from wirebroker.client.topics.topics import create_topics, delete_topics, list_topics
from wirebroker.console.audit.audit_log import AuditLog
from wirebroker.console.changes.kinds.table import CHANGES
from wirebroker.console.changes.making.change_run import ChangeAuthor
from wirebroker.console.changes.making.runner import ChangeRunner


async def starts_of(collector, topic: str) -> list[int]:
    places = list(await partitions_of(collector.client, [topic]))
    return [row.start for row in await planned_trim(collector.client, places)]


async def test_a_topic_is_planned_and_created(open_cluster):
    async with open_cluster() as c:
        values = {"topic": "made", "partitions": 3, "configs": "retention.ms = 1000\n\n"}
        plan = await prepared(c, "create-topic", **values)
        assert plan.summary == "Create topic made"
        assert plan.lines == (
            "partitions: 3",
            "replicas of each partition: the brokers' default",
            "retention.ms: 1000",
        )
        assert "made" not in await list_topics(c.client)
        assert await plan.apply() == "topic made was created"
        assert (await list_topics(c.client))["made"] == 3
        configs = await configs_of(c.client, TOPIC, "made", names=["retention.ms"])
        assert [config.value for config in configs] == ["1000"]


async def test_partitions_are_added(open_cluster):
    async with open_cluster() as c:
        plan = await prepared(c, "add-partitions", topic="orders", partitions=5)
        assert plan.summary == "Add 3 partitions to topic orders"
        assert plan.lines == ("partitions: 2 → 5",)
        assert "no longer in order" in plan.warnings[0].replace("so they are ", "")
        assert (await list_topics(c.client))["orders"] == 2
        assert await plan.apply() == "topic orders has 5 partitions"
        assert (await list_topics(c.client))["orders"] == 5


async def test_all_records_are_deleted_and_the_offsets_are_notes(open_cluster):
    async with open_cluster() as c:
        plan = await prepared(c, "empty-topic", topic="orders")
        assert plan.lines == ("2 partitions: all current records are deleted",)
        assert plan.notes == (
            "partition 0: start 0 → 5 (5 offsets)",
            "partition 1: start 0 → 5 (5 offsets)",
        )
        assert await starts_of(c, "orders") == [0, 0]
        assert await plan.apply() == "10 offsets deleted from topic orders"
        assert await starts_of(c, "orders") == [5, 5]


@pytest.mark.parametrize(
    ("values", "lines", "starts"),
    [
        ({"before_offset": 2}, [0, 1], [2, 2]),
        ({"before_offset": 99, "partitions": "1"}, [1], [0, 5]),
        ({"before_time": "1970-01-01T00:00:03Z"}, [0, 1], [2, 2]),
        ({"before_time": "3000"}, [0, 1], [2, 2]),
    ],
    ids=["offset", "offset-of-a-partition", "time", "milliseconds"],
)
async def test_old_records_are_deleted(open_cluster, values, lines, starts):
    async with open_cluster() as c:
        plan = await prepared(c, "trim-topic", topic="orders", **values)
        assert [line.partition(":")[0] for line in plan.lines] == [f"partition {n}" for n in lines]
        is_to_end = 5 in starts
        assert plan.notes == (("partition 1: start 0 → 5 (5 offsets)",) if is_to_end else ())
        assert plan.lines[-1].endswith("→ the end") is is_to_end
        await plan.apply()
        assert await starts_of(c, "orders") == starts


async def test_offsets_of_a_time_that_passes_are_notes(open_cluster):
    async with open_cluster() as c:
        plan = await prepared(c, "trim-topic", topic="orders", before_time="7d")
        assert plan.lines == ("2 partitions of topic orders",)
        assert len(plan.notes) == 2
        assert "--before-time 7d" in plan.command


async def test_a_topic_is_deleted_when_its_name_is_confirmed(open_cluster):
    async with open_cluster() as c:
        await snapshot_when(c, lambda s: "orders" in s.topics and s.topics["orders"].groups)
        plan = await prepared(c, "delete-topic", topic="orders", confirm="orders")
        assert plan.lines == ("orders: delete 2 partitions with all their records",)
        assert "Groups have offsets in it: billing" in plan.warnings[1]
        assert await plan.apply() == "topic orders was deleted"
        assert "orders" not in await list_topics(c.client)


async def test_a_plan_differs_after_the_cluster_has_changed(open_cluster):
    async with open_cluster() as c:
        plan = await prepared(c, "add-partitions", topic="copies", partitions=5)
        await made(c, "add-partitions", topic="copies", partitions=4)
        later = await prepared(c, "add-partitions", topic="copies", partitions=5)
        assert plan.lines != later.lines
        plan = await prepared(c, "trim-topic", topic="orders", before_offset=4)
        await made(c, "trim-topic", topic="orders", before_offset=1)
        assert (
            await prepared(c, "trim-topic", topic="orders", before_offset=4)
        ).lines != plan.lines


async def test_several_topics_are_deleted(open_cluster):
    async with open_cluster() as c:
        await snapshot_when(c, lambda s: s.topics.keys() >= {"orders", "latest"})
        await snapshot_when(c, lambda s: "billing" in s.topics["orders"].groups)
        plan = await prepared(c, "delete-topics", topics="orders\nlatest\n", confirm=2)
        assert plan.summary == "Delete 2 topics"
        assert plan.lines == (
            "orders: delete 2 partitions with all their records",
            "latest: delete 1 partition with all its records",
        )
        assert plan.warnings[1] == "Groups have offsets in them: billing, workers."
        assert plan.command.endswith(
            "topic delete -b " + c.settings.bootstrap + " --yes orders latest"
        )
        assert await plan.apply() == "2 topics deleted"
        assert await list_topics(c.client) == {"copies": 3}


async def test_a_deletion_in_part_says_how_many_topics_were_deleted(open_cluster):
    async with open_cluster() as c:
        plan = await prepared(c, "delete-topics", topics="orders\nlatest\ncopies", confirm=3)
        await delete_topics(c.client, ["latest"])
        with pytest.raises(ClientError, match=r"topic latest cannot .*; 2 other topics deleted"):
            await plan.apply()
        assert await list_topics(c.client) == {}


async def test_topics_that_cannot_be_deleted_are_named(open_cluster):
    async with open_cluster() as c:
        plan = await prepared(c, "delete-topics", topics="orders\nlatest\ncopies", confirm=3)
        await delete_topics(c.client, ["latest", "copies"])
        with pytest.raises(ClientError, match="1 other topic deleted; not deleted: latest, copies"):
            await plan.apply()


@pytest.mark.parametrize("kind", ["delete-topic", "delete-topics"])
async def test_the_deletion_of_an_internal_topic_says_what_is_lost(open_cluster, kind):
    async with open_cluster() as c:
        name = "__consumer_offsets"
        assert name in {topic.name for topic in (await c.client.metadata([name])).topics}
        one = {"topic": name, "confirm": name}
        values = one if kind == "delete-topic" else {"topics": name, "confirm": 1}
        plan = await prepared(c, kind, **values)
        assert plan.warnings[1].startswith("__consumer_offsets is an internal topic: all groups")


async def test_the_audit_log_names_every_deleted_topic(open_cluster, tmp_path):
    runner = ChangeRunner(AuditLog(tmp_path / "audit.log", SystemClock()), SystemClock())
    names = [f"{'long' * 60}-{number}" for number in range(130)]
    async with open_cluster() as c:
        await create_topics(c.client, dict.fromkeys(names, 1), configs={})
        values = {"topics": "\n".join(names), "confirm": "130"}
        plan = await prepared(c, "delete-topics", **values)
        author = ChangeAuthor("anna", "admin", "192.0.2.1", "http")
        run = await runner.begin(CHANGES["delete-topics"], c, values, plan, author)
        await run.ended.wait()
        assert names[0] not in await list_topics(c.client)
    runner.audit.close()
    begin, end = map(json.loads, (tmp_path / "audit.log").read_text().splitlines())
    assert begin["values"]["topics"].splitlines() == names
    assert end["message"] == "130 topics deleted"


async def test_a_change_that_is_too_late_says_why(open_cluster):
    async with open_cluster() as c:
        create = await prepared(c, "create-topic", topic="made")
        await create_topics(c.client, {"made": 1}, configs={})
        with pytest.raises(ClientError, match="TOPIC_ALREADY_EXISTS"):
            await create.apply()
        delete = await prepared(c, "delete-topic", topic="orders", confirm="orders")
        empty = await prepared(c, "empty-topic", topic="orders")
        assert len((await records_of(c.client, "orders")).values()) == 2
        await delete_topics(c.client, ["orders"])
        for late in (delete, empty):
            with pytest.raises(ClientError, match="orders"):
                await late.apply()
