"""Conversion of closed windows to placed rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.pipelines.rows.placed_rows import PlacedRow, partition_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow

    from wirebroker.pipelines.job.job_folder import BatchPlan


class WindowPlacer:
    """Placer for the windows of one batch."""

    def __init__(self, topic: str, plan: BatchPlan) -> None:
        self._topic = topic
        self._plan = plan

    def rows(self, batch: pyarrow.RecordBatch) -> Iterator[PlacedRow]:
        """Return the rows of an Arrow batch with key, value and timestamp (a window's end)."""
        columns = (batch.column(name).to_pylist() for name in ("key", "value", "timestamp"))
        for key, value, timestamp in zip(*columns, strict=True):
            partition = partition_of(key, value, "", self._plan.partitions)
            # Ordered by end.
            yield PlacedRow(
                *(partition, "", timestamp, 0, self._topic, partition),
                *(key, value, timestamp, []),
            )
