"""Statistics of the log cleaner, for metrics.

Source: Kafka's LogCleaner and LogCleanerManager.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class CleanerFigures:
    """Statistics of one broker's cleaner.

    Attributes:
        checked_s: When it last searched for dirty logs, in monotonic seconds.
        max_dirty_percent: Dirty part of the dirtiest log at that time.
        last_clean_s: Duration of the last compaction.
        bytes_before: Total size of compacted segments before compaction.
        bytes_after: Their size afterwards.
    """

    checked_s: float | None = None
    max_dirty_percent: int = 0
    last_clean_s: float = 0.0
    bytes_before: int = 0
    bytes_after: int = 0

    @property
    def recopy_percent(self) -> int:
        """Share of the compacted bytes that was kept."""
        return round(100 * self.bytes_after / self.bytes_before) if self.bytes_before else 0
