"""Replicas that are moved, throttled and elected leaders from the console, on three brokers."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.brokers.collectors import collecting, snapshot_when
from tests.support.console.changes import made, prepared, run_line
from wirebroker.client.configs.configs import BROKER, TOPIC, alter_configs, configs_of
from wirebroker.client.errors import ClientError
from wirebroker.client.replicas.elections import led_partitions
from wirebroker.client.replicas.moves import cancel_moves, throttles_of
from wirebroker.client.replicas.reassignments import list_reassignments, move_replicas, replicas_of
from wirebroker.client.replicas.replication_throttle import DIRECTORY_RATE
from wirebroker.client.topics.leaders import TopicPartition
from wirebroker.client.topics.topics import create_topics
from wirebroker.console.changes.change import ChangeError
from wirebroker.testing import Cluster

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence

    from wirebroker.console.model.collector import Collector


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as started:
        yield started


@contextlib.asynccontextmanager
async def watched(
    cluster: Cluster, topic: str, assignment: Sequence[Sequence[int]] = ((0, 1), (1, 0))
) -> AsyncIterator[Collector]:
    """Create a topic on brokers, and return a collector that has read it."""
    async with collecting(cluster.bootstrap_servers) as c:
        await create_topics(c.client, {topic: -1}, configs={}, assignment=assignment)
        await snapshot_when(c, lambda s: topic in s.topics and len(s.brokers) == 3)
        yield c


async def replicas(c: Collector, topic: str) -> list[list[int]]:
    return list((await replicas_of(c.client, [topic])).values())


async def until_equal(c: Collector, read: Callable[[], Awaitable[Any]], expected: Any) -> None:
    """Wait until a broker responds as expected: brokers apply a change after its response."""
    found = None
    async for _ in c.client.within(30.0).tries():
        found = await read()
        if found == expected:
            return
    assert found == expected


async def until_moved(c: Collector) -> None:
    await until_equal(c, lambda: list_reassignments(c.client), [])


async def until_placed(c: Collector, topic: str, expected: list[list[int]]) -> None:
    await until_equal(c, lambda: replicas(c, topic), expected)


async def until_on(c: Collector, topic: str, brokers: set[int]) -> None:
    """Wait until every partition is on these brokers."""

    async def read() -> set[frozenset[int]]:
        return {frozenset(row) for row in await replicas(c, topic)}

    await until_equal(c, read, {frozenset(brokers)})


async def until_led(c: Collector, topic: str, leaders: list[int]) -> None:
    async def read() -> list[int]:
        return [row.leader for row in await led_partitions(c.client, [topic])]

    await until_equal(c, read, leaders)


async def until_throttled(c: Collector, rates: dict[int, int]) -> None:
    async def read() -> dict[int, int]:
        return dict((await throttles_of(c.client)).rates)

    await until_equal(c, read, rates)


async def test_a_partition_is_moved(cluster):
    async with watched(cluster, "moved") as c:
        plan = await prepared(c, "move-partition", topic="moved", partition=0, replicas="1, 2")
        assert plan.summary == "Move moved-0 to brokers 1, 2"
        assert plan.lines == ("moved-0: brokers 0, 1 → 1, 2",)
        assert plan.warnings == ()
        assert "are copied between brokers" in plan.notes[0]
        assert await replicas(c, "moved") == [[0, 1], [1, 0]]
        assert await plan.apply() == "1 move started"
        await until_moved(c)
        await until_placed(c, "moved", [[1, 2], [1, 0]])
        with pytest.raises(ChangeError, match="is on brokers 1, 2 already"):
            await prepared(c, "move-partition", topic="moved", partition=0, replicas="1,2")


async def test_a_move_with_more_replicas_and_a_throttle_is_warned_of(cluster):
    async with watched(cluster, "grown") as c:
        values = {"topic": "grown", "partition": 1, "replicas": "1,0,2", "throttle": 2_000_000}
        plan = await prepared(c, "move-partition", **values)
        assert plan.lines[-1] == "throttle: 1.91 MiB/s between two brokers"
        assert plan.warnings == (
            "the replication factor changes from 2 to 3: grown",
            "the throttle remains until it is removed, also after the move",
        )
        await plan.apply()
        await until_throttled(c, dict.fromkeys((0, 1, 2), 2_000_000))
        await until_moved(c)
        plan = await prepared(c, "unthrottle-moves", topic="grown")
        assert plan.lines[0] == "broker 0: 1.91 MiB/s → no throttle"
        assert plan.lines[-1] == "topic grown: its list of throttled replicas is removed"
        assert await plan.apply() == "the throttle is removed"
        await until_throttled(c, {})
        with pytest.raises(ChangeError, match="no broker has a throttle"):
            await prepared(c, "unthrottle-moves")


async def test_a_topic_is_spread_over_brokers(cluster):
    async with watched(cluster, "spread") as c:
        plan = await prepared(c, "spread-topic", topic="spread", brokers="1,2")
        assert plan.summary == "Move 2 partitions of spread to spread it over brokers 1, 2"
        await plan.apply()
        await until_moved(c)
        await until_on(c, "spread", {1, 2})
        await made(c, "spread-topic", topic="spread", replication_factor=3)
        await until_moved(c)
        await until_on(c, "spread", {0, 1, 2})


async def test_running_moves_are_throttled_and_canceled(cluster):
    async with watched(cluster, "stuck") as c:
        cluster.nodes[2].pause()  # it copies nothing until it continues
        try:
            for partition in (0, 1):
                values = {"topic": "stuck", "partition": partition, "replicas": "2,0"}
                await made(c, "move-partition", **values)
            plan = await prepared(c, "move-partition", topic="stuck", partition=0, replicas="2,1")
            assert "replaces the running move of stuck-0" in plan.warnings
            plan = await prepared(c, "cancel-moves", topic="stuck", partition=1)
            assert plan.summary == "Cancel 1 move"
            assert plan.lines == ("stuck-1: brokers 2, 0, 1 → 0, 1",)
            assert "printf" in plan.command
            assert await plan.apply() == "1 move canceled"
            assert [row.place.partition for row in await list_reassignments(c.client)] == [0]
            plan = await prepared(c, "cancel-moves")
            assert plan.command.endswith("reassign cancel -b " + c.settings.bootstrap + " --yes")
            await plan.apply()
            with pytest.raises(ChangeError, match="ended meanwhile"):
                await prepared(c, "cancel-moves")
        finally:
            cluster.nodes[2].resume()
        await until_moved(c)
        assert [set(row) for row in await replicas(c, "stuck")] == [{0, 1}, {0, 1}]


async def test_a_throttled_move_keeps_the_throttle_of_running_moves(cluster):
    async with watched(cluster, "both") as c:
        for _ in range(12):
            cluster.produce("both", b"x" * 500_000, partition=0)
        values = {"topic": "both", "replicas": "2,1", "throttle": 50_000}
        await made(c, "move-partition", partition=0, **values)
        plan = await prepared(c, "move-partition", partition=1, **values)
        assert "the moves in progress are throttled too" in plan.warnings
        await plan.apply()
        configs = {row.name: row.value for row in await configs_of(c.client, TOPIC, "both")}
        assert configs["follower.replication.throttled.replicas"] == "0:2,1:2"
        assert "0:0" in (configs["leader.replication.throttled.replicas"] or "")
        await alter_configs(c.client, BROKER, "1", {DIRECTORY_RATE: "1048576"})
        plan = await prepared(c, "cancel-moves", topic="both")
        assert "broker 1: 1 MiB/s between log directories → no throttle" in plan.lines
        assert plan.lines[-1] == "topic both: its list of throttled replicas is removed"
        rows = await list_reassignments(c.client)
        ended = rows[0]._replace(place=TopicPartition("both", 1))
        await move_replicas(c.client, {ended.place: None})
        assert (await cancel_moves(c.client, [rows[0], ended])).canceled == 1
        await until_throttled(c, {})
        with pytest.raises(ChangeError, match="no broker has a throttle"):
            await prepared(c, "unthrottle-moves")


async def test_a_throttle_of_running_moves_names_their_brokers(cluster):
    async with watched(cluster, "slow") as c:
        cluster.nodes[2].pause()
        try:
            await made(c, "move-partition", topic="slow", partition=0, replicas="2,1")
            plan = await prepared(c, "throttle-moves", throttle=1_048_576)
            assert plan.lines == (
                "broker 0: no throttle → 1 MiB/s",
                "broker 1: no throttle → 1 MiB/s",
                "broker 2: does not respond → 1 MiB/s",
            )
        finally:
            cluster.nodes[2].resume()
        await until_moved(c)
        with pytest.raises(ChangeError, match="no moves are in progress"):
            await prepared(c, "throttle-moves", throttle=1_048_576)


async def test_a_throttled_move_does_not_wait_for_brokers_of_other_moves(cluster):
    async with watched(cluster, "moving") as c, watched(cluster, "further") as further:
        cluster.nodes[2].pause()
        try:
            await made(c, "move-partition", topic="moving", partition=0, replicas="2,1")
            values = {"topic": "further", "partition": 0, "replicas": "1,0", "throttle": 2_000_000}
            plan = await prepared(further, "move-partition", **values)
            assert await plan.apply() == (
                "1 move started; brokers 2 do not respond and are not throttled"
            )
            await until_placed(c, "further", [[1, 0], [1, 0]])
            plan = await prepared(c, "throttle-moves", throttle=3_000_000)
            assert await plan.apply() == (
                "moves are throttled to 2.86 MiB/s; brokers 2 do not respond and are not throttled"
            )
        finally:
            cluster.nodes[2].resume()
        await until_moved(c)
        await made(c, "unthrottle-moves", topic="moving")
        await until_throttled(c, {})


async def test_preferred_leaders_are_elected(cluster):
    async with watched(cluster, "led", [(1, 0)]) as c:
        # After the move broker 1 leads still, and broker 0 is preferred.
        await made(c, "move-partition", topic="led", partition=0, replicas="0,1")
        await until_moved(c)
        plan = await prepared(c, "elect-preferred", topic="led")
        assert plan.summary == "Elect the preferred leaders of 1 partition"
        assert plan.lines == ("led-0: leader 1 → 0",)
        assert await plan.apply() == "1 leader elected"
        await until_led(c, "led", [0])
        with pytest.raises(ChangeError, match="every leader is the preferred one"):
            await prepared(c, "elect-preferred", topic="led", partition=0)


async def test_an_unclean_election_needs_a_partition_without_leader(cluster):
    async with watched(cluster, "alone", [(2,)]) as c:
        with pytest.raises(ChangeError, match="no such partition is without a leader"):
            await prepared(c, "elect-unclean", topic="alone")


async def test_the_command_lines_do_the_same(cluster, tmp_path):
    async with watched(cluster, "commanded", [(0, 1), (1, 0)]) as c:
        for _ in range(12):
            cluster.produce("commanded", b"x" * 500_000, partition=0)
        values = {"topic": "commanded", "partition": 0, "replicas": "2,1", "throttle": 50_000}
        await run_line((await prepared(c, "move-partition", **values)).command, tmp_path)
        assert [row.goal for row in await list_reassignments(c.client)] == [[2, 1]]
        await until_throttled(c, dict.fromkeys((0, 1, 2), 50_000))
        plan = await prepared(c, "throttle-moves", throttle=40_000)
        await run_line(plan.command, tmp_path)
        await until_throttled(c, dict.fromkeys((0, 1, 2), 40_000))
        plan = await prepared(c, "cancel-moves", topic="commanded", partition=0)
        await run_line(plan.command, tmp_path)
        assert (await list_reassignments(c.client), await replicas(c, "commanded")) == (
            [],
            [[1, 0], [1, 0]],  # as Kafka's controller orders them
        )
        await made(c, "move-partition", **values | {"partition": 1, "replicas": "0,1"})
        await until_moved(c)
        plan = await prepared(c, "unthrottle-moves", topic="commanded")
        await run_line(plan.command, tmp_path)
        await until_throttled(c, {})
        plan = await prepared(c, "elect-preferred", topic="commanded", partition=1)
        await run_line(plan.command, tmp_path)
        await until_led(c, "commanded", [0, 0])
        plan = await prepared(c, "spread-topic", topic="commanded", brokers="1,2")
        await run_line(plan.command, tmp_path)
        await until_moved(c)
        await until_on(c, "commanded", {1, 2})


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        ("move-partition", {"replicas": "1,1"}, "broker 1 is in the list twice"),
        ("move-partition", {"replicas": "one"}, "is not a list of brokers"),
        ("move-partition", {"replicas": ""}, "is not a list of brokers"),
        ("move-partition", {"replicas": "1", "partition": "-1"}, "from 0 to"),
        ("move-partition", {"replicas": "1", "partition": "7"}, "there is no partition wrong-7"),
        ("move-partition", {"replicas": "7"}, "broker 7 is not registered"),
        ("move-partition", {"replicas": "1", "topic": "none"}, "there is no topic none"),
        ("move-partition", {"replicas": "1", "throttle": "0"}, "write a number from 1 to"),
        ("spread-topic", {"brokers": "7"}, "there is no broker 7; running brokers: 0, 1, 2"),
        ("spread-topic", {"replication_factor": "4"}, "cannot have 4 replicas on 3 brokers"),
        ("elect-preferred", {"topic": "", "partition": "0"}, "a partition needs a topic"),
        ("elect-preferred", {"partition": "9"}, "has no partition 9"),
        ("elect-unclean", {"topic": "none"}, "there is no topic none"),
        ("cancel-moves", {"topic": "", "partition": "0"}, "a partition needs a topic"),
    ],
)
async def test_wrong_values_are_refused(cluster, kind, values, message):
    async with collecting(cluster.bootstrap_servers) as c:
        await create_topics(
            c.client, {"wrong": -1}, configs={}, assignment=[(0, 1)], may_exist=True
        )
        defaults = {"topic": "wrong"} | ({"partition": "0"} if kind == "move-partition" else {})
        with pytest.raises((ChangeError, ClientError), match=message):
            await prepared(c, kind, **(defaults | values))
