"""The files that must be synced before a log's recovery point can advance."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from wirebroker.storage.files import Files
    from wirebroker.storage.log.segment.segment import Segment


class FlushTarget(NamedTuple):
    """Files to sync; afterwards call the log's mark_flushed(offset, cuts=cuts)."""

    offset: int  # everything below it is then on disk
    files: Files
    directory: str
    segments: tuple[Segment, ...]
    small_files: tuple[str, ...]  # producer snapshots, leader epochs, topic id
    is_directory_dirty: bool
    cuts: int  # the log's at creation

    def sync(self) -> None:
        """Sync the files. Blocks; may run in a thread while the log is used."""
        for segment in self.segments:
            segment.sync()
        for path in self.small_files:
            if self.files.exists(path):
                file = self.files.data(path)
                file.sync()
                file.close()
        if self.is_directory_dirty:
            self.files.sync_directory(self.directory)
