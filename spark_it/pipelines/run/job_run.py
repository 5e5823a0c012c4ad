"""A job's run: a query of Spark's that is stopped between batches, and started again after faults.

SIGTERM and SIGINT ask for an end: the batch at work is finished, no other is begun. A query that
fails (a broker that is away, a worker that was killed) is started again from its checkpoint, which
repeats nothing (delivery.py), until it has not got on for as long as the job's patience.
"""

from __future__ import annotations

import contextlib
import re
import signal
import threading
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import KafkaException
from pyspark.errors import AnalysisException, IllegalArgumentException

from wirebroker.pipelines.job.errors import PatienceError, PipelineError, first_line
from wirebroker.pipelines.source.reader_options import refusal_in
from wirebroker.pipelines.spark.java_start import OF_SPARK, SPARK_ENDED

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery

    from wirebroker.base.clock import Clock
    from wirebroker.pipelines.run.reporter import Reporter
    from wirebroker.pipelines.run.work_ticker import WorkTicker

_LOOK_S: Final = 0.25
PAUSE_S: Final = 2.0
# What a task raised that no other try mends: it comes as text.
_OURS: Final = re.compile(r"wirebroker\.pipelines\.errors\.\w+: (.*)")


class StopWish:
    """Whether the run is to end, which a signal may ask for."""

    def __init__(self) -> None:
        self._asked = threading.Event()

    def heed_signals(self) -> None:
        """Take SIGTERM and SIGINT for the wish from now on; a second one ends at once."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)

    def ask(self) -> None:
        """Ask for the end."""
        self._asked.set()

    @property
    def is_asked(self) -> bool:
        """Whether it was asked for."""
        return self._asked.is_set()

    def pause(self, seconds: float) -> None:
        """Wait, or until it is asked for."""
        self._asked.wait(seconds)

    def _on_signal(self, number: int, _: Any) -> None:
        signal.signal(number, signal.SIG_DFL)
        self.ask()


class JobRun:
    """Runs one query to its end.

    Args:
        handle: Does a batch: its table and number.
        note: Is told what Spark says of each batch that is done.
        look: Is called every quarter of a second while the query runs.
        ticker: Prints how far a batch is.
        explain: Tells of a failure what no other try mends; None: it may.
        patience_s: How long it may fail without getting on, in seconds.
        stop: The wish for an end.
        reporter: Is told of faults.
        clock: For the patience.
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
        stop: StopWish,
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
        # Whether a query of this checkpoint has reported progress, be it idle.
        self._has_worked = False
        self._failure: Exception | None = None
        self._cause: Exception | None = None

    def run(self, start: Callable[[Callable[[DataFrame, int], None]], StreamingQuery]) -> None:
        """Run to the end of what is there, or until the end is asked for.

        Args:
            start: Starts the query with what is to be done with each batch.

        Raises:
            PipelineError: It cannot go on.
            Py4JError, ConnectionError: Spark's process has ended (spark_start.py).
        """
        self._got_on = self._clock.monotonic()
        while not self._stop.is_asked:
            query = None
            try:
                query = start(self._on_batch)
                try:
                    self._watch(query)
                finally:
                    self._note_batches(query)
            except (AnalysisException, IllegalArgumentException) as error:
                # What Spark does not understand it won't understand later; but what it has
                # understood before, it may again: a folder that is away for a time.
                if query is None and not self._has_worked:
                    raise PipelineError(first_line(error)) from error
                self._consider(error)
            except (KafkaException, *OF_SPARK) as error:
                self._consider(error)
            else:
                return
            finally:
                if query is not None:
                    # With Spark gone there is nothing to stop.
                    with contextlib.suppress(*SPARK_ENDED):
                        query.stop()

    def _watch(self, query: StreamingQuery) -> None:
        """Return when the query has ended, or is idle and no more is wanted."""
        idle = 0
        while not query.awaitTermination(_LOOK_S):
            self._note_batches(query)
            self._look()
            self._ticker.look()
            idle = 0 if query.status["isTriggerActive"] else idle + 1
            # Twice: between the end of a batch and the next one it looks idle, too. Whatever
            # begins even so is refused by _on_batch.
            if self._stop.is_asked and idle > 1:
                return

    def _note_batches(self, query: StreamingQuery) -> None:
        """Pass on what Spark says of batches; it keeps the last hundred."""
        if query.id != self._checkpoint:  # another checkpoint's batches begin at 0 again
            self._checkpoint, self._noted, self._has_worked = query.id, -1, False
        for progress in query.recentProgress:
            self._has_worked = True
            # An idle query reports its progress with the number of the next batch.
            is_batch = "addBatch" in progress["durationMs"]
            if is_batch and progress["batchId"] > self._noted:
                self._noted = progress["batchId"]
                self._note(dict(progress))

    def _on_batch(self, table: DataFrame, batch: int) -> None:
        if self._stop.is_asked:
            raise InterruptedError("the end is asked for: this batch is the next run's")
        self._ticker.begin(f"batch {batch}")
        try:
            self._handle(table, batch)
        except (KafkaException, *OF_SPARK, OSError) as error:
            self._cause = error
            # A broker that is away, a task that was killed: worth another try.
            told = _OURS.search(str(error))
            if told:
                self._failure = PipelineError(told[1])
            elif isinstance(error, ImportError):
                self._failure = error
            raise
        except Exception as error:
            self._failure = error
            raise
        finally:
            self._ticker.end()
        self._got_on = self._clock.monotonic()

    def _consider(self, error: Exception) -> None:
        if self._failure is not None:
            raise self._failure
        if self._stop.is_asked:
            return
        failing_s = self._clock.monotonic() - self._got_on
        cause = self._cause or error
        explained = self._explain(cause)
        if explained is not None:
            raise explained from error
        refusal = None if self._has_worked else refusal_in(cause)
        if refusal:
            # With what was taken before, such a thing is of a moment, as a broker that is away.
            raise PipelineError(f"Spark's reader: {refusal}") from error
        why = first_line(cause)
        self._cause = None
        if failing_s > self._patience_s:
            raise PatienceError(f"no batch was done for {failing_s:.0f} s: {why}") from error
        self._reporter.fault(why)
        self._stop.pause(PAUSE_S)
