"""What must reach the disk for a log's recovery point to advance; synced in a thread."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from wirebroker.storage.files import Files
    from wirebroker.storage.log.segment.segment import Segment


class FlushTarget(NamedTuple):
    """Files to sync; after sync() the log's mark_flushed(offset, cuts=cuts) may be called."""

    offset: int  # everything below it is on the disk afterwards
    files: Files
    directory: str
    segments: tuple[Segment, ...]
    small_files: tuple[str, ...]  # paths: producer snapshots, leader epochs, topic id
    is_directory_dirty: bool  # files were created or replaced
    cuts: int  # of the log when this was taken

    def sync(self) -> None:
        """Wait for the disk (fdatasync). Blocks; may run in a thread while the log is used.

        Raises:
            OSError: The disk failed; nothing may be believed flushed.
        """
        for segment in self.segments:
            segment.sync()
        for path in self.small_files:
            if self.files.exists(path):
                file = self.files.data(path)
                file.sync()
                file.close()
        if self.is_directory_dirty:
            self.files.sync_directory(self.directory)
