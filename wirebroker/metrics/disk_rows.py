"""Metrics of flushes and of the log cleaner.

Source: Kafka's LogFlushStats, LogCleaner and LogCleanerManager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.metrics.page import label_texts
from wirebroker.metrics.recent_quantiles import add_count
from wirebroker.metrics.rows import ShownRow

if TYPE_CHECKING:
    from collections.abc import Collection

    from wirebroker.api.broker import Broker
    from wirebroker.base.clock import Slices
    from wirebroker.maintenance.compactor import Compactor
    from wirebroker.metrics.page import Page
    from wirebroker.metrics.recent_quantiles import RecentQuantiles

_FLUSHES: Final = "kafka_log_logflushstats_logflushrateandtimems"
_CLEANER: Final = "kafka_log_logcleaner_"
_MANAGER: Final = "kafka_log_logcleanermanager_"
_US_IN_MS: Final = 1000


class _Cleaner(NamedTuple):
    compactor: Compactor
    now_s: float

    @property
    def since_last_look_ms(self) -> int | None:
        checked_s = self.compactor.figures.checked_s
        return None if checked_s is None else int((self.now_s - checked_s) * 1000)


class _Uncleanable(NamedTuple):
    partitions: int
    bytes: int


CLEANER_ROWS: Final[tuple[ShownRow[_Cleaner], ...]] = (
    ShownRow(
        "Dirty part of the dirtiest log, in percent, at the cleaner's last check.",
        lambda cleaner: cleaner.compactor.figures.max_dirty_percent,
        jmx=f"{_MANAGER}max_dirty_percent",
    ),
    ShownRow(
        "Milliseconds since the cleaner last checked for dirty logs.",
        lambda cleaner: cleaner.since_last_look_ms,
        jmx=f"{_MANAGER}time_since_last_run_ms",
    ),
    ShownRow(
        "Seconds that the last compaction took.",
        lambda cleaner: int(cleaner.compactor.figures.last_clean_s),
        jmx=f"{_CLEANER}max_clean_time_secs",
    ),
    ShownRow(
        "Part of the compacted bytes that was written again, in percent.",
        lambda cleaner: cleaner.compactor.figures.recopy_percent,
        jmx=f"{_CLEANER}cleaner_recopy_percent",
    ),
    ShownRow(
        "Cleaners that died while the broker runs.",
        lambda cleaner: int(cleaner.compactor.has_died),
        jmx=f"{_CLEANER}deadthreadcount",
    ),
)
UNCLEANABLE_ROWS: Final[tuple[ShownRow[_Uncleanable], ...]] = (
    ShownRow(
        "Partitions that are not compacted until a restart, because of an error.",
        lambda uncleanable: uncleanable.partitions,
        jmx=f"{_MANAGER}uncleanable_partitions_count",
    ),
    ShownRow(
        "Bytes of partitions that are not compacted until a restart.",
        lambda uncleanable: uncleanable.bytes,
        jmx=f"{_MANAGER}uncleanable_bytes",
    ),
)


def add_flushes(
    page: Page, broker: Broker, recent: RecentQuantiles, dialects: Collection[str]
) -> None:
    """Add the durations of log syncs."""
    times = broker.replicas.commits.flush_times
    doc = "Time of recent syncs of one or more logs, in milliseconds, by quantile."
    recent.add(page, _FLUSHES, doc, (), times, unit=_US_IN_MS)
    add_count(page, _FLUSHES, (), times.count, dialects)


async def add_cleaner(
    page: Page, broker: Broker, compactor: Compactor, now_s: float, slices: Slices
) -> None:
    """Add the cleaner's metrics, and the uncleanable partitions by log directory."""
    await slices.run(page.add(CLEANER_ROWS, [(label_texts(()), _Cleaner(compactor, now_s))]))
    counts = {directory: _Uncleanable(0, 0) for directory in broker.replicas.directories}
    for partition in list(compactor.uncleanable):
        before = counts.get(partition.directory)
        if before is not None and not partition.is_retired:
            size = before.bytes + partition.log.size_bytes
            counts[partition.directory] = _Uncleanable(before.partitions + 1, size)
    labeled_facts = [
        (label_texts((("logDirectory", directory.path),)), uncleanable)
        for directory, uncleanable in counts.items()
    ]
    await slices.run(page.add(UNCLEANABLE_ROWS, labeled_facts))
