"""The files of a replica after a crash in the middle of a change."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest

from tests.support.tools.waiting import PATIENCE_S, until
from wirebroker.base.clock import SystemClock
from wirebroker.codecs.errors import KafkaError
from wirebroker.codecs.metadata_records import RecordType, metadata_record
from wirebroker.coordinator.raft.model.log_point import LogPoint
from wirebroker.coordinator.raft.model.voter_set import VoterSet
from wirebroker.quorum.log.metadata_batches import BatchBuilder, FetchedBatch
from wirebroker.quorum.log.metadata_snapshot import SnapshotId, encode_first_snapshot
from wirebroker.quorum.log.metadata_store import MetadataStore
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
        log._append(builder.batches)
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


def test_log_whose_data_was_truncated_is_unused_again(tmp_path: Path) -> None:
    log = opened(tmp_path)
    log.load(VoterSet())
    builder = BatchBuilder(base_offset=0, leader_epoch=1, timestamp_ms=1)
    builder.add(metadata_record(RecordType.NO_OP))
    builder.finish_batch()
    (header,) = builder.batches.headers
    log.append(raft_batch(FetchedBatch(header, bytes(builder.batches.buffers[0]))))
    assert not log.is_unused
    log.truncate(0)
    assert log.is_unused


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
