"""What the log cleaner says of its work, for metrics.

A leaf. Source: Kafka's LogCleaner and LogCleanerManager.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class CleanerFigures:
    """Figures of one broker's cleaner.

    Attributes:
        looked_s: When it last looked for dirty logs, on the clock's monotonic seconds; None: never.
        max_dirty_percent: Dirty part of the dirtiest log, when it last looked.
        last_clean_s: How long the last compaction took, in seconds.
        bytes_before: Of all segments that were compacted.
        bytes_after: Of what they became.
    """

    looked_s: float | None = None
    max_dirty_percent: int = 0
    last_clean_s: float = 0.0
    bytes_before: int = 0
    bytes_after: int = 0

    @property
    def recopy_percent(self) -> int:
        """Part of the compacted bytes that was written again."""
        return round(100 * self.bytes_after / self.bytes_before) if self.bytes_before else 0
