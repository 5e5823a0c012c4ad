"""When the metadata log's files are synced, and which records they contain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.wirebroker.quorum.log.metadata_kit import NO_OP
from wirebroker.base.clock import SystemClock
from wirebroker.quorum.log.metadata_batches import BatchBuilder
from wirebroker.quorum.log.metadata_snapshot import SnapshotId, encode_first_snapshot
from wirebroker.quorum.log.metadata_store import DIRECTORY_NAME, MetadataStore
from wirebroker.storage.files import Files

if TYPE_CHECKING:
    from pathlib import Path


class _CountedFiles(Files):
    """Counts syncs of directories."""

    def __init__(self) -> None:
        super().__init__()
        self.synced: list[str] = []

    def sync_directory(self, path: str) -> None:
        self.synced.append(path)
        super().sync_directory(path)


def _append(store: MetadataStore) -> None:
    builder = BatchBuilder(base_offset=store.end_offset, leader_epoch=1, timestamp_ms=1)
    builder.add(NO_OP)
    builder.finish_batch()
    store.append(*builder.batches)


def test_name_of_a_new_segment_is_synced_with_its_first_records(tmp_path: Path) -> None:
    """A sync of a directory may take long, and only `sync` runs in a thread."""
    files = _CountedFiles()
    store = MetadataStore(files, str(tmp_path), SystemClock())
    store.open()
    store.recover()
    files.synced.clear()
    _append(store)
    assert not files.synced
    store.sync()
    assert files.synced == [store.directory]
    store.sync()
    assert len(files.synced) == 1
    store.roll()
    _append(store)
    assert len(files.synced) == 1
    store.sync()
    assert files.synced == [store.directory] * 2
    store.close()


def test_name_of_a_segment_is_synced_again_after_a_start(tmp_path: Path) -> None:
    """A killed process may have created the segment without that sync."""
    first = MetadataStore(Files(), str(tmp_path), SystemClock())
    first.open()
    first.recover()
    _append(first)
    first.close()
    files = _CountedFiles()
    store = MetadataStore(files, str(tmp_path), SystemClock())
    store.open()
    store.recover()
    _append(store)
    store.sync()
    assert files.synced == [store.directory]
    store.close()


@pytest.mark.parametrize(
    ("offset", "is_stored"), [(0, False), (2, False), (3, True), (4, True), (5, False)]
)
def test_records_before_the_start_of_the_log_cannot_be_read(
    tmp_path: Path, offset: int, is_stored: bool
) -> None:
    """A fetch may wait while a snapshot replaces the records that it requested."""
    store = MetadataStore(Files(), str(tmp_path), SystemClock())
    store.open()
    store.recover()
    for _ in range(3):
        _append(store)
    store.roll()
    for _ in range(2):
        _append(store)
    snapshot = SnapshotId(3, 1)
    store.write_snapshot(snapshot, encode_first_snapshot(1, []))
    store.advance_start(snapshot)
    assert (store.slice_from(offset, store.end_offset, 1 << 20) is not None) == is_stored
    store.close()


@pytest.mark.parametrize("snapshot_end", [1, 9], ids=["gap below it", "log that ends before it"])
def test_deleted_segments_are_gone_after_a_power_failure(tmp_path: Path, snapshot_end: int) -> None:
    """Otherwise old records may come back after later ones."""
    files = _CountedFiles()
    store = MetadataStore(files, str(tmp_path), SystemClock())
    store.open()
    store.recover()
    for _ in range(3):
        _append(store)
        store.roll()
    store.write_snapshot(SnapshotId(snapshot_end, 1), encode_first_snapshot(1, []))
    store.close()
    if snapshot_end == 1:
        (tmp_path / DIRECTORY_NAME / f"{1:020}.log").write_bytes(b"")
    files.synced.clear()
    again = MetadataStore(files, str(tmp_path), SystemClock())
    again.open()
    again.recover(may_refetch=True)
    assert files.synced == [again.directory]
    again.close()
