"""Watch on a query that writes by itself, to count its rows and stop it on request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql.streaming import StreamingQuery

    from wirebroker.pipelines.run.job_run import StopRequest

_LOOK_S: Final = 0.25


class QueryWatch:
    """Watch on a running query, whose rows it counts.

    `tell` receives the progress report of each micro-batch with rows. `look` is called every 0.25
    s.
    """

    def __init__(
        self,
        query: StreamingQuery,
        stop: StopRequest | None,
        tell: Callable[[dict[str, Any]], None] | None,
        look: Callable[[], None] = lambda: None,
    ) -> None:
        self.rows = 0
        self._query = query
        self._stop = stop
        self._report = tell
        self._look = look
        # Idle reports have the next batch's number, so the time is needed as well.
        self._noted = (-1, "")

    def follow(self) -> None:
        """Return when the query ends, or stop it after the current batch on request.

        Raises:
            StreamingQueryException: The query failed.
            Py4JError, ConnectionError: Spark's process has ended.
        """
        asked_at: tuple[int, str] | None = None
        try:
            while not self._query.awaitTermination(_LOOK_S):
                self._note()
                self._look()
                if asked_at is not None and self._noted > asked_at:
                    self._query.stop()
                elif asked_at is None and self._stop is not None and self._stop.is_requested:
                    asked_at = self._noted
        except Exception as cause:  # raised again
            try:
                self._note()
            except Exception as error:  # noqa: BLE001 - the first error is raised
                cause.add_note(f"the last batches are not counted: {error!r}")
            raise
        self._note()

    def _note(self) -> None:
        for progress in self._query.recentProgress:
            key = (int(progress["batchId"]), str(progress["timestamp"]))
            if key <= self._noted:
                continue
            self._noted = key
            self.rows += progress["numInputRows"]
            if self._report is not None and progress["numInputRows"]:
                self._report(dict(progress))
