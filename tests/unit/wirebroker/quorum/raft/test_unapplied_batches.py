"""The memory of batches that are not applied yet, and how they are read from the files."""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.support.coordinators.kit import topic
from tests.support.tools.waiting import until
from tests.unit.wirebroker.quorum.membership.quorum_kit import Leader, Observer, Servers
from wirebroker.base.clock import SystemClock
from wirebroker.codecs.metadata_records import RecordType, metadata_record
from wirebroker.coordinator.raft.model.voter_set import VoterSet
from wirebroker.quorum.log.metadata_batches import BatchBuilder, FetchedBatch
from wirebroker.quorum.raft import raft_log, unapplied_batches
from wirebroker.quorum.raft.raft_log import RaftLog, raft_batch
from wirebroker.storage.files import Files

if TYPE_CHECKING:
    from pathlib import Path

    from wirebroker.coordinator.raft.model.log_point import RaftBatch
    from wirebroker.quorum.raft.unapplied_batches import WaitingBatch

BOUND = 20_000


@pytest.fixture(autouse=True)
def _small_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unapplied_batches, "MAX_RESIDENT_BYTES", BOUND)


def opened(directory: Path) -> RaftLog:
    log = RaftLog(str(directory), files=Files(), clock=SystemClock())
    log.load(VoterSet())
    return log


def batches_of(base_offset: int, sizes: list[int], *, epoch: int = 1) -> list[RaftBatch]:
    """Return fetched batches with one record each, of these sizes."""
    batches: list[RaftBatch] = []
    for offset, size in enumerate(sizes, base_offset):
        builder = BatchBuilder(base_offset=offset, leader_epoch=epoch, timestamp_ms=offset)
        name = f"{epoch}-{offset}".ljust(size, "x")
        builder.add(metadata_record(RecordType.TOPIC, name=name, topic_id=bytes(16)))
        builder.finish_batch()
        (header,), (buffer,) = builder.batches.headers, builder.batches.buffers
        batches.append(raft_batch(FetchedBatch(header, bytes(buffer))))
    return batches


def content(batches: list[RaftBatch]) -> list[bytes]:
    return [bytes(batch.payload.batch) for batch in batches]  # type: ignore[attr-defined]


def taken(batches: list[WaitingBatch]) -> list[bytes]:
    return [bytes(batch.fetched.batch) for batch in batches]


async def take_all(log: RaftLog, high_watermark: int) -> list[bytes]:
    found: list[bytes] = []
    while batches := await log.take_committed(high_watermark):
        found += taken(batches)
    return found


async def test_batches_beyond_the_bound_are_read_from_the_files(tmp_path: Path) -> None:
    log = opened(tmp_path)
    batches = batches_of(0, [1_000] * 100)
    for batch in batches:
        log.append([batch])
        assert log.resident_bytes <= BOUND
    assert await take_all(log, 100) == content(batches)
    assert log.resident_bytes == 0
    assert log.last_timestamp_ms == 99
    # Memory is free again.
    later = batches_of(100, [10] * 3)
    log.append(later)
    assert log.resident_bytes > 0
    assert await take_all(log, 103) == content(later)
    log.close()


async def test_small_batches_count_with_their_overhead(tmp_path: Path) -> None:
    log = opened(tmp_path)
    batches = batches_of(0, [1] * 1_000)
    log.append(batches)
    assert log.resident_bytes <= BOUND
    assert await take_all(log, 1_000) == content(batches)
    log.close()


async def test_only_committed_batches_are_read_from_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(raft_log, "_MAX_PIECE_BYTES", 3_000)
    log = opened(tmp_path)
    batches = batches_of(0, [1_000] * 60)
    log.append(batches)
    assert await take_all(log, 45) == content(batches[:45])
    assert await log.take_committed(45) == []
    assert await take_all(log, 46) == content(batches[45:46])
    await log.truncate(50)
    others = batches_of(50, [1_000] * 5, epoch=2)
    log.append(others)
    assert await take_all(log, 55) == content([*batches[46:50], *others])
    assert log.resident_bytes == 0
    log.close()


@pytest.mark.parametrize("seed", range(20))
async def test_batches_are_taken_once_and_in_order(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    log = opened(tmp_path)
    expected: list[bytes] = []
    end = committed = position = 0
    for epoch in range(1, 60):
        match random.choice(["append", "append", "commit", "take", "truncate"]):
            case "append":
                sizes = [random.choice([5, 1_000, 9_000]) for _ in range(random.randrange(1, 9))]
                batches = batches_of(end, sizes, epoch=epoch)
                log.append(batches)
                expected += content(batches)
                end += len(batches)
            case "commit":
                committed = random.randrange(committed, end + 1)
            case "truncate":
                end = random.randrange(committed, end + 1)
                await log.truncate(end)
                del expected[end:]
            case _:
                batches_taken = taken(await log.take_committed(committed))
                assert batches_taken == expected[position : position + len(batches_taken)]
                position += len(batches_taken)
        assert log.resident_bytes <= BOUND
    assert await take_all(log, end) == expected[position:]
    assert log.resident_bytes == 0
    log.close()


async def test_observer_that_applies_slowly_fetches_on_with_bounded_memory(
    tmp_path: Path,
) -> None:
    leader = Leader()
    observer = Observer(tmp_path, Servers(leader))
    may_apply = asyncio.Event()

    async def wait(change: object, image: object) -> None:
        await may_apply.wait()

    observer.follower.subscribe("slow", wait)
    await observer.start()
    log = observer.parts.node._log
    for number in range(1, 200):
        leader.write(topic(f"topic-{number}-{'x' * 100}", number))
        await until(lambda: log.end_offset == leader.end_offset)
        assert log.resident_bytes <= BOUND
    assert observer.follower.image.offset == 0
    may_apply.set()
    assert len((await observer.until(leader.end_offset)).topics) == 199
    assert log.resident_bytes == 0
    await observer.stop()
