"""An observer of a remote quorum: applied, stored, truncated and rejected records."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.coordinators.kit import topic
from tests.support.records.clocks import HandClock
from tests.unit.wirebroker.quorum.membership.quorum_kit import Controllers, Leader, Observer
from wirebroker.base.clock import next_turn
from wirebroker.codecs.metadata_records import RecordType, metadata_record
from wirebroker.codecs.records.batch import write_crc
from wirebroker.quorum.log.metadata_snapshot import snapshot_ids
from wirebroker.storage.files import Files

if TYPE_CHECKING:
    from pathlib import Path

BEGIN = metadata_record(RecordType.BEGIN_TRANSACTION)
END = metadata_record(RecordType.END_TRANSACTION)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


async def test_only_committed_records_are_applied(folder):
    leader = Leader()
    observer = Observer(folder, Controllers(leader))
    await observer.start()
    leader.write(topic("a", 1))
    leader.write(topic("b", 2), commit=False)
    image = await observer.until(2)
    assert sorted(image.topics) == ["a"]
    assert observer.fetcher is not None
    assert observer.fetcher.caught_up.is_set()
    leader.commit(4)
    assert sorted((await observer.until(4)).topics) == ["a", "b"]
    await observer.stop()
    assert observer.controllers.is_closed


async def test_records_of_a_transaction_apply_at_its_end(folder):
    leader = Leader()
    observer = Observer(folder, Controllers(leader))
    await observer.start()
    leader.write([BEGIN, *topic("a", 1)])
    assert (await observer.until(3)).topics == {}
    leader.write([*topic("b", 2), END])
    image = await observer.until(6)
    assert sorted(image.topics) == ["a", "b"]
    assert image.open_transaction is None
    await observer.stop()


async def test_restart_continues_at_the_log_end(folder):
    leader = Leader()
    first = Observer(folder, Controllers(leader))
    await first.start()
    leader.write(topic("a", 1), topic("b", 2))
    await first.until(4)
    await first.stop()
    second = Observer(folder, Controllers(leader))
    loaded = await second.start()
    # Only the quorum knows what is committed.
    assert loaded.topics == {}
    assert (second.log.end_offset, second.log.last_epoch) == (4, 1)
    assert sorted((await second.until(4)).topics) == ["a", "b"]
    assert [request.topics[0].partitions[0].fetch_offset for request in leader.asked[-1:]] == [4]
    await second.stop()


async def test_new_leader_epoch_is_followed_and_diverging_records_cut(folder):
    old = Leader(epoch=3)
    controllers = Controllers(old)
    observer = Observer(folder, controllers)
    await observer.start()
    old.write(topic("a", 1))
    old.write(topic("lost", 2), commit=False)
    await observer.until(2)
    new = Leader(node_id=102, epoch=4)
    new.batches, new.end_offset = old.batches[:1], 2
    new.write(topic("b", 3))
    controllers.active = new
    old.is_down = True
    old.tell()
    image = await observer.until(4)
    assert sorted(image.topics) == ["a", "b"]
    assert observer.fetcher is not None
    assert observer.fetcher.leader_epoch == 4
    await observer.stop()


async def test_snapshot_replaces_records_the_leader_no_longer_has(folder):
    leader = Leader()
    full = Observer(folder / "full", Controllers(leader))
    (folder / "full").mkdir()
    await full.start()
    leader.write(topic("a", 1), topic("b", 2))
    await leader.condense(await full.until(4))
    await full.stop()
    (folder / "late").mkdir()
    late = Observer(folder / "late", Controllers(leader))
    await late.start()
    leader.write(topic("c", 3))
    image = await late.until(6)
    assert sorted(image.topics) == ["a", "b", "c"]
    await late.stop()
    again = Observer(folder / "late", Controllers(leader))
    loaded = await again.start()
    assert (loaded.offset, sorted(loaded.topics)) == (4, ["a", "b"])
    assert sorted((await again.until(6)).topics) == ["a", "b", "c"]
    await again.stop()


async def test_own_snapshots_truncate_the_log(folder):
    leader = Leader()
    settings = {"metadata.log.max.record.bytes.between.snapshots": "1000"}
    observer = Observer(folder, Controllers(leader), settings)
    await observer.start()
    for number in range(1, 30):
        leader.write(topic(f"topic-{number}", number))
        await observer.until(2 * number)
    await observer.stop()
    names = Files().list_directory(f"{folder}/__cluster_metadata-0")
    (snapshot,) = snapshot_ids(names)
    assert snapshot.end_offset > 10
    assert "00000000000000000000.log" not in names
    again = Observer(folder, Controllers(leader), settings)
    assert (await again.start()).offset == snapshot.end_offset
    assert len((await again.until(58)).topics) == 29
    await again.stop()


async def test_unknown_record_stops_the_fetcher_with_one_log_line(folder):
    leader = Leader()
    observer = Observer(folder, Controllers(leader))
    await observer.start()
    leader.write(topic("a", 1))
    await observer.until(2)
    leader.batches.append((2, 1, _batch_of_kind(leader, 99)))
    leader.end_offset = 3
    leader.commit(3)
    assert "cannot be followed" in await observer.failure()
    assert sorted(observer.follower.image.topics) == ["a"]
    await observer.stop()


def _batch_of_kind(leader: Leader, kind: int) -> bytes:
    """Return a batch with a record of an unknown kind."""
    scratch = Leader()
    scratch.end_offset = leader.end_offset
    scratch.tell = lambda: None  # type: ignore[method-assign]
    scratch.write([metadata_record(RecordType.NO_OP)])
    raw = bytearray(scratch.batches[0][2])
    # frame version 1, kind 20 (NoOp), version 0
    index = raw.index(bytes((1, int(RecordType.NO_OP), 0)))
    raw[index + 1] = kind

    write_crc(raw, 0)
    return bytes(raw)


async def test_damaged_batch_stops_the_fetcher_with_one_log_line(folder):
    leader = Leader()
    observer = Observer(folder, Controllers(leader))
    await observer.start()
    leader.write(topic("a", 1), commit=False)
    base, epoch, raw = leader.batches[0]
    leader.batches[0] = base, epoch, raw[:-1] + b"\x7f"
    leader.commit(2)
    assert "CRC-32C" in await observer.failure()
    await observer.stop()


async def test_another_cluster_is_not_followed(folder):
    observer = Observer(folder, Controllers(Leader()))
    await observer.start("AAAAAAAAAAAAAAAAAAAAAA")
    assert "INCONSISTENT_CLUSTER_ID" in await observer.failure()
    await observer.stop()


async def test_committed_records_are_never_cut(folder):
    leader = Leader(epoch=2)
    controllers = Controllers(leader)
    observer = Observer(folder, controllers)
    await observer.start()
    leader.write(topic("a", 1), topic("b", 2))
    await observer.until(4)
    other = Leader(node_id=102, epoch=3)
    other.batches, other.end_offset = leader.batches[:1], 2
    other.write(topic("c", 3))
    controllers.active = other
    leader.is_down = True
    leader.tell()
    assert "were committed" in await observer.failure()
    await observer.stop()


class CountingClock(HandClock):
    def monotonic(self) -> float:
        self.passed_ms += 1
        return super().monotonic()


async def test_replaying_a_large_cluster_does_not_block_the_loop(folder):
    leader = Leader()
    observer = Observer(folder, Controllers(leader), clock=CountingClock())
    await observer.start()
    leader.write(topic("large", 1, partitions=2_000))
    turns = 0
    while observer.follower.image.offset < 2_001:
        await next_turn()
        turns += 1
    # A slice takes at most six clock readings, one per record.
    assert turns >= 2_000 / 6
    assert len(observer.follower.image.topics["large"].partitions) == 2_000
    await observer.stop()
