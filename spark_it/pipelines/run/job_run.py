"""A job's run: a Spark query that stops between batches and restarts after faults."""

from __future__ import annotations

import contextlib
import re
import signal
import threading
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import KafkaException
from pyspark.errors import AnalysisException, IllegalArgumentException

from wirebroker.base.signals import set_in_handler
from wirebroker.pipelines.job.errors import PatienceError, PipelineError, first_line
from wirebroker.pipelines.source.reader_options import refusal_in
from wirebroker.pipelines.spark.java_start import OF_SPARK, SPARK_ENDED

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery

    from wirebroker.base.clock import Clock
    from wirebroker.pipelines.run.reporter import Reporter, WorkTicker

_LOOK_S: Final = 0.25
PAUSE_S: Final = 2.0
# A task's error, as text, that retries cannot fix.
_OURS: Final = re.compile(rf"{re.escape(PipelineError.__module__)}\.\w+: (.*)")


class StopRequest:
    """A request to end the run."""

    def __init__(self) -> None:
        self._asked = threading.Event()

    def heed_signals(self) -> None:
        """Handle SIGTERM and SIGINT; a second one ends the process immediately."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)

    def ask(self) -> None:
        """Request the end."""
        self._asked.set()

    @property
    def is_requested(self) -> bool:
        """Whether the end is requested."""
        return self._asked.is_set()

    def pause(self, seconds: float) -> None:
        """Wait, but not after the end is requested."""
        self._asked.wait(seconds)

    def _on_signal(self, number: int, _: Any) -> None:
        signal.signal(number, signal.SIG_DFL)
        set_in_handler(self._asked)


class JobRun:
    """The run of one query.

    `handle` processes a batch. `note` receives Spark's progress report of each batch. `look` is
    called every 0.25 s. `explain` returns the error for a failure that retries cannot fix, else
    None.
    """

    def __init__(
        self,
        handle: Callable[[DataFrame, int], None],
        *,
        note: Callable[[dict[str, Any]], None],
        look: Callable[[], None],
        ticker: WorkTicker,
        explain: Callable[[Exception], PipelineError | None],
        patience_s: float,
        stop: StopRequest,
        reporter: Reporter,
        clock: Clock,
    ) -> None:
        self._handle = handle
        self._note = note
        self._look = look
        self._ticker = ticker
        self._explain = explain
        self._patience_s = patience_s
        self._stop = stop
        self._reporter = reporter
        self._clock = clock
        self._got_on = clock.monotonic()
        self._checkpoint = ""
        self._noted = -1
        # Whether this checkpoint's query has reported progress, even idle.
        self._has_worked = False
        self._failure: Exception | None = None
        self._cause: Exception | None = None

    def run(self, start: Callable[[Callable[[DataFrame, int], None]], StreamingQuery]) -> None:
        """Run until the source has no more records or the end is requested.

        Raises:
            PipelineError: The job cannot continue.
            Py4JError, ConnectionError: Spark's process has ended.
        """
        self._got_on = self._clock.monotonic()
        while not self._stop.is_requested:
            query = None
            try:
                query = start(self._on_batch)
                try:
                    self._watch(query)
                finally:
                    self._note_batches(query)
            except (AnalysisException, IllegalArgumentException) as error:
                # Spark will reject the query again, unless it accepted it before: a folder may be
                # temporarily missing.
                if query is None and not self._has_worked:
                    raise PipelineError(first_line(error)) from error
                self._consider(error)
            except (KafkaException, *OF_SPARK) as error:
                self._consider(error)
            else:
                return
            finally:
                if query is not None:
                    with contextlib.suppress(*SPARK_ENDED):
                        query.stop()

    def _watch(self, query: StreamingQuery) -> None:
        """Return when the query has ended, or is idle after the end was requested."""
        idle = 0
        while not query.awaitTermination(_LOOK_S):
            self._note_batches(query)
            self._look()
            self._ticker.look()
            idle = 0 if query.status["isTriggerActive"] else idle + 1
            # Twice, because the query also looks idle between batches.
            if self._stop.is_requested and idle > 1:
                return

    def _note_batches(self, query: StreamingQuery) -> None:
        """Report Spark's last hundred batches, each once."""
        if query.id != self._checkpoint:  # another checkpoint's batches begin at 0
            self._checkpoint, self._noted, self._has_worked = query.id, -1, False
        for progress in query.recentProgress:
            self._has_worked = True
            # An idle query reports the number of the next batch.
            is_batch = "addBatch" in progress["durationMs"]
            if is_batch and progress["batchId"] > self._noted:
                self._noted = progress["batchId"]
                self._note(dict(progress))

    def _on_batch(self, table: DataFrame, batch: int) -> None:
        if self._stop.is_requested:
            raise InterruptedError("a stop is requested: the next run handles this batch")
        self._ticker.begin(f"batch {batch}")
        try:
            self._handle(table, batch)
        except (KafkaException, *OF_SPARK, OSError) as error:
            self._cause = error
            # A retry may succeed (an unreachable broker, a killed task).
            match = _OURS.search(str(error))
            if match:
                self._failure = PipelineError(match[1])
            elif isinstance(error, ImportError):
                self._failure = error
            raise
        except Exception as error:  # raised again
            self._failure = error
            raise
        finally:
            self._ticker.end()
        self._got_on = self._clock.monotonic()

    def _consider(self, error: Exception) -> None:
        if self._failure is not None:
            raise self._failure
        if self._stop.is_requested:
            return
        failing_s = self._clock.monotonic() - self._got_on
        cause = self._cause or error
        explained = self._explain(cause)
        if explained is not None:
            raise explained from error
        refusal = None if self._has_worked else refusal_in(cause)
        if refusal:
            # If the query worked before, such an error may be temporary.
            raise PipelineError(f"Spark's reader: {refusal}") from error
        why = first_line(cause)
        self._cause = None
        if failing_s > self._patience_s:
            raise PatienceError(f"no batch completed for {failing_s:.0f} s: {why}") from error
        self._reporter.fault(why)
        self._stop.pause(PAUSE_S)
