"""The persister of each node finds the coordinators of all nodes, also after they have moved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support.coordinators.share_state_kit import batches
from tests.support.replicas.broker_cluster import TOPIC_ID
from tests.support.replicas.share_member import ShareCluster
from tests.support.tools.waiting import until
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.groups.partitions import SHARE_GROUP_STATE
from wirebroker.coordinator.share_state.state import (
    PersistedState,
    SharePartitionKey,
    StateError,
    StateSummary,
    StateWrite,
)
from wirebroker.share import default_persister

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

COUNT = 6
PARTITIONS = [(TOPIC_ID, index) for index in range(COUNT)]
FIRST, SECOND = batches("0-9 s0 c1"), batches("3-5 s2 c2")


def nodes_of(cluster: ShareCluster) -> set[int]:
    """Return the nodes that store the states of PARTITIONS."""
    topic = cluster.image.topics[SHARE_GROUP_STATE]
    coordinator = cluster[1].coordinator
    keys = (SharePartitionKey("g", *partition) for partition in PARTITIONS)
    return {topic.partitions[coordinator.partition_for(str(key))].leader for key in keys}


async def begun(cluster: ShareCluster, *assignments: tuple[int, ...]) -> None:
    cluster.create_topic(*[(1,)] * COUNT)
    cluster.create_state_topic(*assignments)
    image = cluster.image
    await until(lambda: all(member.heard is image for member in cluster.members.values()))


def writes(newer: Any, *, start_offset: int = 0) -> dict[tuple[bytes, int], StateWrite]:
    return {partition: StateWrite(1, 4, start_offset, 0, newer) for partition in PARTITIONS}


async def test_every_node_reads_what_any_node_has_written(tmp_path: Path) -> None:
    async with ShareCluster(tmp_path) as cluster:
        await begun(cluster, (1,), (2,), (3,))
        assert nodes_of(cluster) == {1, 2, 3}
        initial = dict.fromkeys(PARTITIONS, (1, 0))
        done: dict[Any, Any] = dict.fromkeys(PARTITIONS)
        assert await cluster[1].persister.initialize("g", initial) == done
        assert await cluster[2].persister.write("g", writes(FIRST)) == done
        assert await cluster[3].persister.write("g", writes(SECOND)) == done
        expected = batches("0-2 s0 c1", "3-5 s2 c2", "6-9 s0 c1")
        for node_id in (1, 2, 3):
            persister = cluster[node_id].persister
            states = await persister.read("g", dict.fromkeys(PARTITIONS, 4))
            for state in states.values():
                assert isinstance(state, PersistedState)
                assert (state.state_epoch, state.start_offset, state.batches) == (1, 0, expected)
            summaries = await persister.read_summary("g", dict.fromkeys(PARTITIONS, 4))
            assert set(summaries.values()) == {StateSummary(1, 4, 0, 0)}
        assert await cluster[1].persister.delete("g", PARTITIONS) == done
        absent = await cluster[2].persister.read("g", dict.fromkeys(PARTITIONS, 4))
        for error in absent.values():
            assert isinstance(error, StateError)
            assert error.code is ErrorCode.INVALID_REQUEST
            assert error.message == (
                "Error in read state RPC. "
                "Read operation on uninitialized share partition not allowed."
            )


async def test_states_survive_the_death_of_their_coordinator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(default_persister, "_FIRST_DELAY_S", 0.05)
    async with ShareCluster(tmp_path) as cluster:
        await begun(cluster, (2, 3))
        persister = cluster[1].persister
        done: dict[Any, Any] = dict.fromkeys(PARTITIONS)
        assert await persister.initialize("g", dict.fromkeys(PARTITIONS, (1, 0))) == done
        assert await persister.write("g", writes(FIRST)) == done
        await cluster.kill(2)
        assert nodes_of(cluster) == {3}
        assert await persister.write("g", writes(SECOND)) == done
        states = await cluster[3].persister.read("g", dict.fromkeys(PARTITIONS, 4))
        for state in states.values():
            assert isinstance(state, PersistedState)
            assert state.batches == batches("0-2 s0 c1", "3-5 s2 c2", "6-9 s0 c1")


async def test_coordinator_that_stays_away_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(default_persister, "_FIRST_DELAY_S", 0.001)
    async with ShareCluster(tmp_path) as cluster:
        await begun(cluster, (2,))
        await cluster.kill(2)
        results = await cluster[1].persister.delete("g", PARTITIONS)
        expected = StateError(
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
            "Error in find coordinator. Exhausted max retries to find coordinator without success.",
        )
        assert set(results.values()) == {expected}
