"""Changes of share partitions that meet the end of a session, a new leader, or a fault.

A persisted acknowledgement is final, also for the share partitions that are loaded later.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.protocol.requests import append
from tests.support.protocol.share_client import VERSION, MemoryPersister, share_broker
from tests.support.records.batches import batch
from tests.support.tools.waiting import until
from wirebroker.base.clock import Slices
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.share_partitions.share_partition import SharePhase
from wirebroker.coordinator.share_state.batch_merge import merge_batches
from wirebroker.coordinator.share_state.state import PersistedState
from wirebroker.replica.leadership import Leadership, LeadershipChange
from wirebroker.share import share_partition_manager

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.support.protocol.share_client import ShareBroker, ShareMemberClient
    from wirebroker.coordinator.share_state.state import StateBatch, StateError, StateWrite
    from wirebroker.share.leader_share import LeaderShare

ACCEPT, RELEASE = 1, 2
FINAL_EPOCH = -1


class StoringPersister(MemoryPersister):
    """A persister that returns what was written.

    Attributes:
        fault: Raised by all reads and writes.
        may_write: Cleared to delay all writes.
    """

    def __init__(self) -> None:
        super().__init__()
        self.fault: Exception | None = None
        self.may_write = asyncio.Event()
        self.may_write.set()
        self._stored: dict[tuple[bytes, int], tuple[int, tuple[StateBatch, ...]]] = {}

    async def read(
        self, group_id: str, partitions: Mapping[tuple[bytes, int], int]
    ) -> dict[tuple[bytes, int], PersistedState | StateError]:
        if self.fault is not None:
            raise self.fault
        results = await super().read(group_id, partitions)
        for partition, (start_offset, batches) in self._stored.items():
            if isinstance(results.get(partition), PersistedState):
                results[partition] = PersistedState(0, start_offset, 0, batches)
        return results

    async def write(
        self, group_id: str, partitions: Mapping[tuple[bytes, int], StateWrite]
    ) -> dict[tuple[bytes, int], StateError | None]:
        if self.fault is not None:
            raise self.fault
        await self.may_write.wait()
        results = await super().write(group_id, partitions)
        for partition, write in partitions.items():
            if results[partition] is None:
                start_offset, stored = self._stored.get(partition, (0, ()))
                start_offset = max(start_offset, write.start_offset)
                merged = merge_batches(stored, write.batches, start_offset)
                self._stored[partition] = start_offset, merged
        return results


def use(share: ShareBroker, persister: MemoryPersister) -> None:
    stored: Any = persister
    share.persister = persister
    share.shares._loader._persister = stored
    share.shares._writer._persister = stored


def only_share(share: ShareBroker) -> LeaderShare:
    (found,) = share.shares.shares
    return found


async def close_session(member: ShareMemberClient, name: str) -> None:
    """Close the session of another member."""
    body = {
        "group_id": member.group,
        "member_id": name,
        "share_session_epoch": FINAL_EPOCH,
        "topics": [],
    }
    response = await member.client.ask(ApiKey.SHARE_ACKNOWLEDGE, VERSION, body)
    assert response.error_code == ErrorCode.NONE


async def test_acknowledgement_in_progress_reaches_the_next_share_partition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    count = 4_000
    async with share_broker(tmp_path) as share:
        use(share, StoringPersister())
        ann, bob = await share.member("ann"), await share.member("bob")
        await append(ann.client, "t", batch(*[b"a"] * count))
        assert await ann.acquired(max_records=1) == [(0, count - 1, 1)]
        first = only_share(share)
        monkeypatch.setattr(Slices, "SECONDS", 0.0)
        types = [ACCEPT, RELEASE] * (count // 2)
        acknowledging = asyncio.ensure_future(ann.acknowledge((0, count - 1, types)))
        await until(lambda: len(first.state.records.first.states) > 1)
        await close_session(bob, "ann")
        await until(lambda: first.state.phase is SharePhase.FENCED)
        fetched = await bob.acquired(max_records=1, batch_size=1)
        assert (await acknowledging).error_code == 0
        accepted = set(range(0, count, 2))
        assert fetched != []
        for first_offset, last_offset, _ in fetched:
            assert accepted.isdisjoint(range(first_offset, last_offset + 1))


@pytest.mark.parametrize("epochs", [1, 2])
async def test_new_leader_epoch_drops_the_state(tmp_path: Path, epochs: int):
    async with share_broker(tmp_path) as share:
        use(share, StoringPersister())
        ann = await share.member("ann")
        await append(ann.client, "t", batch(b"a"))
        assert await ann.acquired() == [(0, 0, 1)]
        old = only_share(share)
        epoch = old.partition.leader_epoch + epochs
        old.partition.role.leader_epoch = epoch
        elected = LeadershipChange([Leadership(old.partition, epoch)])
        share.broker.replicas.leaderships.tell(elected)
        assert old.state.phase is SharePhase.FENCED
        assert await ann.acquired() == [(0, 0, 1)]
        assert only_share(share).state.leader_epoch == epoch


async def test_share_partition_of_a_group_without_session_is_not_loaded(tmp_path: Path):
    async with share_broker(tmp_path) as share:
        with pytest.raises(KafkaError) as raised:
            share.shares.find_or_load("g", share.topic_id, 0)
        assert raised.value.code is ErrorCode.SHARE_SESSION_NOT_FOUND
        assert not share.shares.shares


async def test_number_of_share_partitions_is_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(share_partition_manager, "MOST_PARTITIONS", 1)
    async with share_broker(tmp_path, 2) as share:
        ann = await share.member("ann")
        response = await ann.fetch((0, 1), wait_ms=1)
        codes = [result.error_code for result in response.responses[0].partitions]
        assert sorted(codes) == [ErrorCode.NONE, ErrorCode.SHARE_SESSION_LIMIT_REACHED]


class Later:
    """A clock a minute ahead."""

    def __init__(self, clock: Any) -> None:
        self._clock = clock

    def now_ms(self) -> int:
        return self._clock.now_ms() + 60_000

    def monotonic(self) -> float:
        return self._clock.monotonic() + 60


async def test_removed_share_partition_does_not_write_expired_locks(tmp_path: Path):
    async with share_broker(tmp_path) as share:
        ann = await share.member("ann")
        await append(ann.client, "t", batch(b"a"))
        assert await ann.acquired() == [(0, 0, 1)]
        share.shares.fence(only_share(share), KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        share.shares.locks._clock = Later(share.broker.clock)
        await share.shares.locks.release_expired()
        assert share.persister.writes == []
        assert share.broker.metrics.share_lock_timeouts == 0


async def test_expired_locks_are_written_and_their_records_fetched_again(tmp_path: Path):
    async with share_broker(tmp_path) as share:
        ann, bob = await share.member("ann"), await share.member("bob")
        await append(ann.client, "t", batch(b"a"))
        assert await ann.acquired() == [(0, 0, 1)]
        waiting = asyncio.ensure_future(bob.acquired(wait_ms=60_000))
        await until(lambda: len(share.shares.sessions) == 2)
        share.shares.locks._clock = Later(share.broker.clock)
        await share.shares.locks.release_expired()
        assert await waiting == [(0, 0, 2)]
        await until(lambda: len(share.persister.writes) == 1)
        assert share.broker.metrics.share_lock_timeouts == 1


async def test_persister_that_raises_leaves_records_with_their_member(tmp_path: Path):
    async with share_broker(tmp_path) as share:
        persister = StoringPersister()
        use(share, persister)
        ann = await share.member("ann")
        await append(ann.client, "t", batch(b"a", b"b"))
        assert await ann.acquired() == [(0, 1, 1)]
        persister.fault = RuntimeError("a bug")
        result = await ann.acknowledge((0, 1, [ACCEPT]))
        assert result.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        persister.fault = None
        assert (await ann.acknowledge((0, 1, [ACCEPT]))).error_code == 0
        assert not share.shares._writer._changing


async def test_load_that_raises_is_an_error_and_repeated_later(tmp_path: Path):
    async with share_broker(tmp_path) as share:
        persister = StoringPersister()
        use(share, persister)
        persister.fault = RuntimeError("a bug")
        ann = await share.member("ann")
        await append(ann.client, "t", batch(b"a"))
        response = await ann.fetch(wait_ms=1)
        code = response.responses[0].partitions[0].error_code
        assert code == ErrorCode.UNKNOWN_SERVER_ERROR
        persister.fault = None
        assert await ann.acquired() == [(0, 0, 1)]


async def test_fault_in_an_acknowledgement_loads_the_share_partition_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def broken(*_: Any) -> Any:
        yield
        raise RuntimeError("a bug")

    async with share_broker(tmp_path, 2) as share:
        use(share, StoringPersister())
        ann = await share.member("ann")
        await append(ann.client, "t", batch(b"a"))
        assert await ann.acquired() == [(0, 0, 1)]
        broken_one = only_share(share)
        with monkeypatch.context() as patch:
            patch.setattr(share_partition_manager, "acknowledge", broken)
            result = await ann.acknowledge((0, 0, [ACCEPT]))
        assert result.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert broken_one.state.phase is SharePhase.FENCED
        assert await ann.acquired() == [(0, 0, 1)]
        assert (await ann.acknowledge((0, 0, [ACCEPT]))).error_code == 0


async def test_next_session_of_a_member_waits_for_the_release_of_its_records(tmp_path: Path):
    async with share_broker(tmp_path) as share:
        use(share, StoringPersister())
        ann, again = await share.member("ann"), await share.member("ann")
        await append(ann.client, "t", batch(*[b"a"] * 3))
        assert await ann.acquired() == [(0, 2, 1)]
        await close_session(again, "ann")
        assert await again.acquired() == [(0, 2, 2)]
        assert (await again.acknowledge((0, 2, [ACCEPT]))).error_code == 0


async def test_acknowledgement_in_progress_is_finished_when_the_broker_stops(tmp_path: Path):
    async with share_broker(tmp_path) as share:
        persister = StoringPersister()
        use(share, persister)
        ann = await share.member("ann")
        await append(ann.client, "t", batch(b"a"))
        assert await ann.acquired() == [(0, 0, 1)]
        persister.may_write.clear()
        acknowledging = asyncio.ensure_future(ann.acknowledge((0, 0, [ACCEPT])))
        await until(lambda: bool(share.shares._writer._changing))
        await share.shares.stop()
        persister.may_write.set()
        assert (await acknowledging).error_code == 0


async def test_state_is_loaded_after_the_records_of_the_last_session_are_stored(tmp_path: Path):
    async with share_broker(tmp_path) as share:
        persister = StoringPersister()
        use(share, persister)
        ann, bob = await share.member("ann"), await share.member("bob")
        await append(ann.client, "t", batch(b"a"))
        assert await ann.acquired() == [(0, 0, 1)]
        persister.may_write.clear()
        await close_session(bob, "ann")
        await until(lambda: not share.shares.shares)
        fetching = asyncio.ensure_future(bob.acquired(wait_ms=60_000))
        await until(lambda: len(share.shares.shares) == 1)
        persister.may_write.set()
        assert await fetching == [(0, 0, 2)]
