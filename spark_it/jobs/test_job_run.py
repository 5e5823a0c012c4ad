"""A job's run restarts a query after faults, even one that had no work yet."""

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
        """Do nothing."""


class _Reporter:
    def __init__(self) -> None:
        self.faults: list[str] = []

    def fault(self, why: str) -> None:
        self.faults.append(why)


class _Stop:
    is_requested = False

    def pause(self, seconds: float) -> None:
        """Do not wait."""


def _run(steps: list[Callable[[], Any]]) -> list[str]:
    """Run with these results of the query's starts; return the reported faults."""
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


def test_restart_of_idle_query_is_retried(spark: SparkSession) -> None:
    del spark  # makes PySpark importable
    from pyspark.errors import AnalysisException

    idle: dict[str, Any] = {"batchId": 0, "durationMs": {"triggerExecution": 1}}
    missing_folder = AnalysisException("the folder is away")
    faults = _run(
        [
            lambda: _Query([idle], KafkaException("the broker is away")),
            lambda: _raise(missing_folder),
            lambda: _Query([]),
        ]
    )
    assert len(faults) == 2


def test_query_that_never_started_fails_immediately(spark: SparkSession) -> None:
    del spark
    from pyspark.errors import AnalysisException

    from wirebroker.pipelines.job.errors import PipelineError

    with pytest.raises(PipelineError, match="no such column"):
        _run([lambda: _raise(AnalysisException("no such column"))])


def test_permanent_task_error_is_recognized_in_spark_error_text(
    spark: SparkSession,
) -> None:
    from pyspark.sql.functions import udf

    from wirebroker.pipelines.job.errors import JobFileError
    from wirebroker.pipelines.run.job_run import _OURS

    def refuse(_number):  # Spark reads types from annotations
        raise JobFileError("the setting `x` is missing")

    with pytest.raises(Exception, match="JobFileError") as raised:
        spark.range(1).select(udf(refuse, "long")("id")).collect()
    match = _OURS.search(str(raised.value))
    assert match
    assert match[1] == "the setting `x` is missing"
