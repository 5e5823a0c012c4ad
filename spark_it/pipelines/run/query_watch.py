"""A query that writes by itself, followed to its end: its rows counted, an end that is asked for.

Spark keeps what it says of the last hundred micro-batches alone, so who counts looks often.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql.streaming import StreamingQuery

    from wirebroker.pipelines.run.job_run import StopWish

_LOOK_S: Final = 0.25


class QueryWatch:
    """Follows one query.

    Args:
        query: It runs.
        stop: The wish for an end; None: nobody has one.
        tell: Is told what Spark says of each micro-batch that had rows; None: nobody.
        look: Is called every quarter of a second.

    Attributes:
        rows: How many came so far.
    """

    def __init__(
        self,
        query: StreamingQuery,
        stop: StopWish | None,
        tell: Callable[[dict[str, Any]], None] | None,
        look: Callable[[], None] = lambda: None,
    ) -> None:
        self.rows = 0
        self._query = query
        self._stop = stop
        self._tell = tell
        self._look = look
        # A number and a time: looks that find nothing have the number of the batch to come.
        self._noted = (-1, "")

    def follow(self) -> None:
        """Return at the query's end, or behind the batch at work when the end is asked for.

        The batch that has begun since is broken off, and is the next run's.

        Raises:
            StreamingQueryException: The query has failed.
            Py4JError, ConnectionError: Spark's process has ended.
        """
        asked_at: tuple[int, str] | None = None
        try:
            while not self._query.awaitTermination(_LOOK_S):
                self._note()
                self._look()
                if asked_at is not None and self._noted > asked_at:
                    self._query.stop()
                elif asked_at is None and self._stop is not None and self._stop.is_asked:
                    asked_at = self._noted
        except Exception as cause:
            try:
                self._note()
            except Exception as error:  # noqa: BLE001 - the first error is raised
                cause.add_note(f"the last batches are not counted: {error!r}")
            raise
        self._note()

    def _note(self) -> None:
        for progress in self._query.recentProgress:
            place = (int(progress["batchId"]), str(progress["timestamp"]))
            if place <= self._noted:
                continue
            self._noted = place
            self.rows += progress["numInputRows"]
            if self._tell is not None and progress["numInputRows"]:
                self._tell(dict(progress))
