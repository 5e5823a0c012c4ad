"""When the metadata log's files are synced."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.unit.wirebroker.quorum.log.metadata_kit import NO_OP
from wirebroker.base.clock import SystemClock
from wirebroker.quorum.log.metadata_batches import BatchBuilder
from wirebroker.quorum.log.metadata_store import MetadataStore
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
    store.append(builder.batches)


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
