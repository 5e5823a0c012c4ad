"""The share coordinator of a running broker: its topic, loads, pruning, cold snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tests.support.brokers.servers import broker_of, running
from tests.support.coordinators.share_state_kit import batches
from tests.support.records.batches import records_in
from tests.support.tools.waiting import until
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.share_state_records import ShareStateKind, decode_share_state_key
from wirebroker.coordinator.groups.partitions import SHARE_GROUP_STATE
from wirebroker.coordinator.share_state.state import (
    PersistedState,
    StateError,
    StateSummary,
    StateWrite,
)

if TYPE_CHECKING:
    from pathlib import Path

    from wirebroker.api.broker import Broker
    from wirebroker.broker.server import Server
    from wirebroker.storage.log.log import Log

SETTINGS: Final = {
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.snapshot.update.records.per.snapshot": "2",
}
SNAPSHOT, UPDATE = ShareStateKind.SHARE_SNAPSHOT, ShareStateKind.SHARE_UPDATE


async def with_topic(server: Server, name: str = "t") -> tuple[Broker, bytes]:
    """Return the broker, with share groups and a topic of two partitions, and the topic's id."""
    broker = broker_of(server)
    updates = [{"feature": "share.version", "max_version_level": 1, "upgrade_type": 1}]
    await broker.controller.ask(ApiKey.UPDATE_FEATURES, {"feature_updates": updates})
    topics = [{"name": name, "num_partitions": 2, "replication_factor": 1}]
    created = await broker.controller.ask(ApiKey.CREATE_TOPICS, {"topics": topics})
    topic_id: bytes = created.topics[0].topic_id
    await until(lambda: topic_id in broker.metadata.image.topics_by_id)
    await until(lambda: broker.share_coordinator.is_enabled)
    return broker, topic_id


def log_of(broker: Broker) -> Log:
    return broker.replicas.find(SHARE_GROUP_STATE, b"", by_id=False)[0][0].log


def kinds(broker: Broker) -> list[ShareStateKind | None]:
    """Return the kinds of the records that are not deleted; None for a tombstone."""
    log = log_of(broker)
    read = log.read(log.log_start_offset, 1 << 20, up_to_offset=log.log_end_offset, min_one=True)
    assert read.slice is not None
    kinds: list[ShareStateKind | None] = []
    for _, record in records_in(read.slice.read()):
        key = decode_share_state_key(record.key or b"")
        assert key is not None
        kinds.append(None if record.value is None else key.kind)
    return kinds


def write(*described: str, start_offset: int = 0) -> StateWrite:
    return StateWrite(1, 4, start_offset, 0, batches(*described))


async def test_states_are_stored_loaded_and_pruned(tmp_path: Path) -> None:
    async with running(tmp_path, settings=SETTINGS) as server:
        broker, topic_id = await with_topic(server)
        persister = broker.persister
        first, second = (topic_id, 0), (topic_id, 1)
        done: dict[Any, Any] = {first: None, second: None}
        # It creates the topic.
        assert await persister.initialize("g", {first: (1, 0), second: (1, 5)}) == done
        topic = broker.metadata.image.topics[SHARE_GROUP_STATE]
        assert len(topic.partitions) == 1
        for offset in range(4):
            newer = {first: write(f"{offset} s2 c1")}
            assert await persister.write("g", newer) == {first: None}
        expected = [SNAPSHOT, SNAPSHOT, UPDATE, UPDATE, SNAPSHOT, UPDATE]
        assert kinds(broker) == expected
        await broker.share_coordinator.prune()
        # The second partition's only snapshot is needed.
        assert kinds(broker) == expected[1:]
        assert log_of(broker).log_start_offset == 1
    async with running(tmp_path, settings=SETTINGS) as server:
        broker = broker_of(server)
        await until(lambda: not broker.share_coordinator._partitions.is_loading)
        assert await broker.persister.read("g", {first: 4, second: 4}) == {
            first: PersistedState(1, 0, -1, batches("0-3 s2 c1")),
            second: PersistedState(1, 5, -1, ()),
        }
        # Offsets of loaded records count as well.
        assert await broker.persister.delete("g", [second]) == {second: None}
        await broker.share_coordinator.prune()
        assert log_of(broker).log_start_offset == 4


async def test_cold_snapshots_allow_pruning(tmp_path: Path) -> None:
    settings = {**SETTINGS, "share.coordinator.cold.partition.snapshot.interval.ms": "600000"}
    async with running(tmp_path, settings=settings) as server:
        broker, topic_id = await with_topic(server)
        first = (topic_id, 0)
        await broker.persister.initialize("g", {first: (1, 0)})
        await broker.persister.write("g", {first: write("0 s2 c1")})
        coordinator = broker.share_coordinator
        await coordinator.snapshot_cold()
        assert kinds(broker) == [SNAPSHOT, UPDATE]
        for shard in coordinator._partitions.shards():
            (partition,) = shard.recorded.values()
            partition.state = partition.state._replace(create_timestamp_ms=0, write_timestamp_ms=0)
        await coordinator.snapshot_cold()
        await coordinator.prune()
        assert kinds(broker) == [SNAPSHOT]
        (state,) = (await broker.persister.read("g", {first: 0})).values()
        assert isinstance(state, PersistedState)
        assert state.batches == batches("0 s2 c1")


async def test_states_of_a_deleted_topic_are_deleted(tmp_path: Path) -> None:
    async with running(tmp_path, settings=SETTINGS) as server:
        broker, topic_id = await with_topic(server)
        first = (topic_id, 0)
        await broker.persister.initialize("g", {first: (1, 0)})
        deletion = {"topics": [{"name": "t"}], "timeout_ms": 30_000}
        await broker.controller.ask(ApiKey.DELETE_TOPICS, deletion)
        await until(lambda: topic_id not in broker.metadata.image.topics_by_id)
        assert kinds(broker) == [SNAPSHOT, None]


async def test_configs_of_the_topic(tmp_path: Path) -> None:
    async with running(tmp_path, settings=SETTINGS) as server:
        broker, _ = await with_topic(server)
        await broker.share_coordinator.create_topic()
        await until(lambda: SHARE_GROUP_STATE in broker.metadata.image.topics)
        settings = log_of(broker).settings
        assert not settings.is_compacted
        assert settings.is_deleted_by_retention
        assert settings.retention_ms == -1
        assert settings.segment_bytes == 104_857_600


async def test_without_the_feature_nothing_is_stored(tmp_path: Path) -> None:
    async with running(tmp_path, settings=SETTINGS) as server:
        broker = broker_of(server)
        first = (b"t" * 16, 0)
        if broker.share_coordinator.is_enabled:
            updates = [{"feature": "share.version", "max_version_level": 0, "upgrade_type": 2}]
            await broker.controller.ask(ApiKey.UPDATE_FEATURES, {"feature_updates": updates})
            await until(lambda: not broker.share_coordinator.is_enabled)
        assert await broker.persister.initialize("g", {first: (1, 0)}) == {first: None}
        summary = StateSummary(0, 0, -1, -1)
        assert await broker.persister.read_summary("g", {first: 0}) == {first: summary}
        assert SHARE_GROUP_STATE not in broker.metadata.image.topics


async def test_stop_ends_waits_of_the_persister(tmp_path: Path) -> None:
    async with running(tmp_path, settings=SETTINGS) as server:
        broker, topic_id = await with_topic(server)
        await broker.persister.initialize("g", {(topic_id, 0): (1, 0)})
    (error,) = (await broker.persister.read("g", {(topic_id, 0): 0})).values()
    assert isinstance(error, StateError)
    assert error.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
