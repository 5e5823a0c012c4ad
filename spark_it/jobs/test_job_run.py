"""A job's run starts a query again after faults, also one that has had nothing to do so far."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import KafkaException

from tests.support.records.clocks import HandClock

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from wirebroker.pipelines.run.job_run import JobRun

pytestmark = [pytest.mark.long, pytest.mark.java]


class _Query:
    """A query that reports progress and then fails, or ends."""

    def __init__(self, progress: list[dict[str, Any]], error: Exception | None = None) -> None:
        self.id = uuid.UUID(int=1)
        self.recentProgress = progress
        self._error = error

    def awaitTermination(self, timeout: float) -> bool:  # noqa: N802 - PySpark's name
        del timeout
        if self._error is not None:
            raise self._error
        return True

    def stop(self) -> None:
        """Nothing runs."""


class _Reporter:
    def __init__(self) -> None:
        self.faults: list[str] = []

    def fault(self, why: str) -> None:
        self.faults.append(why)


class _Stop:
    is_asked = False

    def pause(self, seconds: float) -> None:
        """Wait for nobody."""


def _run(steps: list[Callable[[], Any]]) -> list[str]:
    """Run with these results of the query's starts; return the faults that were reported."""
    from wirebroker.pipelines.run.job_run import JobRun

    reporter = _Reporter()
    unused: Any = None
    run: JobRun = JobRun(
        unused,
        note=unused,
        look=unused,
        ticker=unused,
        explain=lambda _: None,
        patience_s=300,
        stop=_Stop(),  # type: ignore[arg-type]
        reporter=reporter,  # type: ignore[arg-type]
        clock=HandClock(),
    )
    run.run(lambda _: steps.pop(0)())
    assert not steps
    return reporter.faults


def _raise(error: Exception) -> Any:
    raise error


def test_an_idle_query_that_cannot_start_again_at_once_is_tried_again(spark: SparkSession) -> None:
    del spark  # without it there is no PySpark to import
    from pyspark.errors import AnalysisException

    idle: dict[str, Any] = {"batchId": 0, "durationMs": {"triggerExecution": 1}}
    away = AnalysisException("the folder is away")
    faults = _run(
        [
            lambda: _Query([idle], KafkaException("the broker is away")),
            lambda: _raise(away),
            lambda: _Query([]),
        ]
    )
    assert len(faults) == 2


def test_a_query_that_never_started_fails_at_once(spark: SparkSession) -> None:
    del spark
    from pyspark.errors import AnalysisException

    from wirebroker.pipelines.job.errors import PipelineError

    with pytest.raises(PipelineError, match="no such column"):
        _run([lambda: _raise(AnalysisException("no such column"))])
