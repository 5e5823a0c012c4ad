"""What a task makes of closed windows: placed rows, by their keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.pipelines.rows.placed_rows import PlacedRow, partition_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow

    from wirebroker.pipelines.job.job_folder import BatchPlan


class WindowPlacer:
    """Places the windows of one batch."""

    def __init__(self, topic: str, plan: BatchPlan) -> None:
        self._topic = topic
        self._plan = plan

    def rows(self, batch: pyarrow.RecordBatch) -> Iterator[PlacedRow]:
        """Return the rows of a batch with the columns key, value and timestamp (a window's end)."""
        columns = (batch.column(name).to_pylist() for name in ("key", "value", "timestamp"))
        for key, value, timestamp in zip(*columns, strict=True):
            partition = partition_of(key, value, "", self._plan.partitions)
            # In the order of their ends.
            yield PlacedRow(
                *(partition, "", timestamp, 0, self._topic, partition),
                *(key, value, timestamp, []),
            )
