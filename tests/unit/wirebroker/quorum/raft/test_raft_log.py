"""The files of a replica after a crash in the middle of a change."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.tools.waiting import PATIENCE_S, until
from wirebroker.base.clock import SystemClock
from wirebroker.codecs.errors import KafkaError
from wirebroker.codecs.metadata_records import RecordType, metadata_record
from wirebroker.config import StartError
from wirebroker.coordinator.raft.model.log_point import LogPoint
from wirebroker.coordinator.raft.model.log_view import Agreement
from wirebroker.coordinator.raft.model.voter_set import VoterSet
from wirebroker.quorum.log.metadata_batches import BatchBuilder, FetchedBatch
from wirebroker.quorum.log.metadata_snapshot import SnapshotId, encode_first_snapshot
from wirebroker.quorum.log.metadata_store import DIRECTORY_NAME, MetadataStore
from wirebroker.quorum.raft.raft_log import RaftLog, raft_batch
from wirebroker.storage.files import Files

if TYPE_CHECKING:
    from pathlib import Path


def opened(directory: Path, files: Files | None = None) -> RaftLog:
    return RaftLog(str(directory), files=files or Files(), clock=SystemClock())


def log_of(directory: Path, *, epoch: int, count: int) -> RaftLog:
    """Return a log with one record a batch."""
    log = opened(directory)
    log.load(VoterSet())
    for offset in range(count):
        builder = BatchBuilder(base_offset=offset, leader_epoch=epoch, timestamp_ms=1)
        builder.add(metadata_record(RecordType.NO_OP))
        builder.finish_batch()
        log.store.append(*builder.batches)
    return log


@pytest.mark.parametrize("end_offset", [3, 5, 9], ids=["within", "at its end", "after it"])
def test_log_that_a_stored_snapshot_should_have_replaced_is_deleted(
    tmp_path: Path, end_offset: int
) -> None:
    """The replica stored its leader's snapshot and crashed before it deleted its own log."""
    log = log_of(tmp_path, epoch=1, count=5)
    log.store.write_snapshot(SnapshotId(end_offset, 2), encode_first_snapshot(1, []))
    log.close()
    loaded = opened(tmp_path).load(VoterSet())
    assert loaded.view.end == LogPoint(2, end_offset)
    assert (loaded.view.start_offset, loaded.view.end_offset) == (end_offset, end_offset)


def test_log_that_continues_a_snapshot_is_kept(tmp_path: Path) -> None:
    log = log_of(tmp_path, epoch=2, count=5)
    log.store.write_snapshot(SnapshotId(3, 2), encode_first_snapshot(1, []))
    log.close()
    loaded = opened(tmp_path).load(VoterSet())
    assert loaded.view.end == LogPoint(2, 5)


async def test_log_whose_data_was_truncated_is_unused_again(tmp_path: Path) -> None:
    log = opened(tmp_path)
    log.load(VoterSet())
    builder = BatchBuilder(base_offset=0, leader_epoch=1, timestamp_ms=1)
    builder.add(metadata_record(RecordType.NO_OP))
    builder.finish_batch()
    (header,) = builder.batches.headers
    log.append([raft_batch(FetchedBatch(header, bytes(builder.batches.buffers[0])))])
    assert not log.is_unused
    await log.truncate(0)
    assert log.is_unused


async def test_truncation_does_not_sync_on_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_of(tmp_path, epoch=1, count=3)
    file_class = type(log.store._segments[-1].log)
    sync = file_class.sync
    threads: list[threading.Thread] = []

    def noted(file: Any) -> None:
        threads.append(threading.current_thread())
        sync(file)

    monkeypatch.setattr(file_class, "sync", noted)
    await log.truncate(1)
    assert log.end_offset == 1
    assert len(threads) == 1
    assert threading.main_thread() not in threads


@pytest.mark.parametrize("end", ["installed", "deleted", "damaged", "closed", "restarted"])
async def test_download_of_a_snapshot_leaves_no_open_file(tmp_path: Path, end: str) -> None:
    files = Files()
    log = opened(tmp_path, files)
    log.load(VoterSet())
    log.close()
    before = files.open_file_count
    content = bytes(300) if end == "damaged" else encode_first_snapshot(1, [])
    point = LogPoint(2, 9)
    for _ in range(2 if end == "restarted" else 1):
        for position in range(0, len(content), 10):
            log.write_part(point, position, content[position : position + 10])
            assert files.open_file_count == before + 1
    match end:
        case "installed":
            _, checked = await log.check_part(point)
            await log.install(point, checked)
            log.store.close()
        case "damaged":
            with pytest.raises(KafkaError):
                await log.check_part(point)
            log.delete_part(point)
        case "closed":
            log.close()
        case _:
            log.delete_part(point)
    assert files.open_file_count == before
    names = files.list_files(log.store.directory)
    assert any(name.endswith(".part") for name in names) == (end == "closed")


async def test_sync_does_not_wait_for_an_installed_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither do votes, which the same thread writes."""
    log = opened(tmp_path)
    log.load(VoterSet())
    content, point = encode_first_snapshot(1, []), LogPoint(2, 9)
    log.write_part(point, 0, content)
    begun, released = threading.Event(), threading.Event()
    write = MetadataStore.write_snapshot

    def write_slowly(store: MetadataStore, snapshot: SnapshotId, data: bytes) -> None:
        begun.set()
        released.wait(PATIENCE_S)
        write(store, snapshot, data)

    monkeypatch.setattr(MetadataStore, "write_snapshot", write_slowly)
    installing = asyncio.create_task(log.install(point, content))
    await until(begun.is_set)
    syncing = asyncio.create_task(log.sync())
    await asyncio.wait({syncing}, timeout=1)
    has_synced = syncing.done()
    released.set()
    await asyncio.gather(installing, syncing)
    assert has_synced
    assert log.end_offset == 9
    log.close()


def write_segments(directory: Path, *ranges: tuple[int, int], epoch: int = 1) -> None:
    """Write segments with these ranges of offsets, one record a batch."""
    folder = directory / DIRECTORY_NAME
    folder.mkdir(parents=True, exist_ok=True)
    for start, end in ranges:
        builder = BatchBuilder(base_offset=start, leader_epoch=epoch, timestamp_ms=1)
        for _ in range(start, end):
            builder.add(metadata_record(RecordType.NO_OP))
            builder.finish_batch()
        (folder / f"{start:020d}.log").write_bytes(b"".join(builder.batches.buffers))


def write_snapshots(directory: Path, *snapshots: SnapshotId) -> None:
    for snapshot in snapshots:
        path = directory / DIRECTORY_NAME / snapshot.file_name
        path.write_bytes(encode_first_snapshot(1, []))


def stored(directory: Path, suffix: str) -> list[str]:
    return sorted(path.name for path in (directory / DIRECTORY_NAME).glob(f"*{suffix}"))


@pytest.mark.parametrize("may_refetch", [False, True], ids=["voter", "observer"])
def test_records_missing_before_a_snapshot_are_not_needed(
    tmp_path: Path, *, may_refetch: bool
) -> None:
    """The snapshot was stored, and a crash kept the segments before it from being deleted."""
    write_segments(tmp_path, (0, 4), (9, 12))
    write_snapshots(tmp_path, SnapshotId(2, 1), SnapshotId(9, 1))
    loaded = opened(tmp_path).load(VoterSet(), may_refetch=may_refetch)
    assert (loaded.view.start_offset, loaded.view.end) == (9, LogPoint(1, 12))
    assert loaded.view.earliest_snapshot == LogPoint(1, 9)
    assert stored(tmp_path, ".log") == [f"{9:020d}.log"]
    assert stored(tmp_path, ".checkpoint") == [SnapshotId(9, 1).file_name]


GAPS = {
    "after the snapshot": ([(0, 5), (5, 7), (9, 12)], [SnapshotId(5, 1)], (0, 7)),
    "without a snapshot": ([(0, 5), (9, 12)], [], (0, 5)),
    "before the first record": ([(9, 12)], [], (0, 0)),
    "between snapshot and log": ([(9, 12)], [SnapshotId(5, 1)], (5, 5)),
}


@pytest.mark.parametrize("gap", GAPS)
def test_observer_fetches_records_again_that_a_power_failure_lost(tmp_path: Path, gap: str) -> None:
    segments, snapshots, expected = GAPS[gap]
    write_segments(tmp_path, *segments)
    write_snapshots(tmp_path, *snapshots)
    log = opened(tmp_path)
    loaded = log.load(VoterSet(), may_refetch=True)
    assert (loaded.view.start_offset, loaded.view.end_offset) == expected
    end = loaded.view.end_offset
    builder = BatchBuilder(base_offset=end, leader_epoch=2, timestamp_ms=1)
    builder.add(metadata_record(RecordType.NO_OP))
    builder.finish_batch()
    log.store.append(*builder.batches)
    log.close()
    again = opened(tmp_path).load(VoterSet())
    assert again.view.end == LogPoint(2, end + 1)


@pytest.mark.parametrize("gap", GAPS)
def test_voter_that_lacks_records_is_refused_and_nothing_is_deleted(
    tmp_path: Path, gap: str
) -> None:
    segments, snapshots, _ = GAPS[gap]
    write_segments(tmp_path, *segments)
    write_snapshots(tmp_path, *snapshots)
    before = stored(tmp_path, "")
    with pytest.raises(StartError, match="lacks the records from offset"):
        opened(tmp_path).load(VoterSet())
    assert set(before) <= set(stored(tmp_path, ""))


def test_gap_within_a_segment_is_found(tmp_path: Path) -> None:
    write_segments(tmp_path, (0, 5), (7, 9))
    folder = tmp_path / DIRECTORY_NAME
    later = folder / f"{7:020d}.log"
    first = folder / f"{0:020d}.log"
    first.write_bytes(first.read_bytes() + later.read_bytes())
    later.unlink()
    with pytest.raises(StartError, match="lacks the records from offset 5 to 6"):
        opened(tmp_path).load(VoterSet())
    loaded = opened(tmp_path).load(VoterSet(), may_refetch=True)
    assert loaded.view.end_offset == 5


def test_snapshot_that_replaces_the_log_deletes_older_ones(tmp_path: Path) -> None:
    """Otherwise this replica, as leader, would send its snapshot to a new follower repeatedly."""
    write_segments(tmp_path, (3, 5))
    write_snapshots(tmp_path, SnapshotId(3, 1), SnapshotId(9, 2))
    loaded = opened(tmp_path).load(VoterSet())
    assert stored(tmp_path, ".checkpoint") == [SnapshotId(9, 2).file_name]
    assert loaded.view.compare(LogPoint(2, 9)).agreement is Agreement.VALID


def test_epochs_are_those_of_the_batches(tmp_path: Path) -> None:
    """The file of epochs is not synced: a power failure may leave an older one, or none."""
    log = opened(tmp_path)
    log.load(VoterSet())
    for epoch, offset in ((1, 0), (3, 1), (4, 2)):
        builder = BatchBuilder(base_offset=offset, leader_epoch=epoch, timestamp_ms=1)
        builder.add(metadata_record(RecordType.NO_OP))
        builder.finish_batch()
        log.store.append(*builder.batches)
    log.close()
    write_snapshots(tmp_path, SnapshotId(2, 3))
    path = tmp_path / DIRECTORY_NAME / "leader-epoch-checkpoint"
    for content in (b"0\n2\n2 0\n7 2\n", b"", None):
        path.unlink()
        if content is not None:
            path.write_bytes(content)
        loaded = opened(tmp_path).load(VoterSet())
        assert loaded.view.end_of_epoch(2) == LogPoint(1, 1)
        assert loaded.view.end_of_epoch(3) == LogPoint(3, 2)
        assert loaded.view.end == LogPoint(4, 3)
