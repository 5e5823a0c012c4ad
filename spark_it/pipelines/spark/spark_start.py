"""The start and stop of Spark for a job."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import SparkSession

from wirebroker.pipelines.job.errors import PipelineError
from wirebroker.pipelines.source.reader_options import texts_of
from wirebroker.pipelines.spark.java_start import OF_SPARK, SPARK_ENDED, start_java

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_ENDED: Final = "Spark's process has ended: start the job again"


@contextlib.contextmanager
def running_spark(name: str, settings: Mapping[str, Any]) -> Iterator[SparkSession]:
    """Start Spark for a block of work, and stop it after the block.

    Raises:
        PipelineError: Spark does not start, or its process ends within the block.
    """
    spark = start_spark(name, settings)
    try:
        yield spark
    except OF_SPARK as error:
        if _has_text(error):
            raise
        raise PipelineError(_ENDED) from error
    except SPARK_ENDED as error:
        raise PipelineError(_ENDED) from error
    finally:
        # If the process has ended, the block's error is the cause.
        with contextlib.suppress(*SPARK_ENDED):
            spark.stop()


def start_spark(name: str, settings: Mapping[str, Any]) -> SparkSession:
    """Start Spark, or return the running one; settings override the defaults.

    Raises:
        PipelineError: Spark does not start.
    """
    # Another Python might lack these modules.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    defaults = {
        "spark.app.name": name,
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        # Each is a task and state on disk in each batch; Spark's 200 would dominate a small batch.
        "spark.sql.shuffle.partitions": "16",
    }
    options = texts_of(defaults | dict(settings))
    start_java(options)
    builder = SparkSession.builder
    for key, value in options.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel(str(settings.get("spark.log.level", "ERROR")))
    return spark


def _has_text(error: Exception) -> bool:
    """Return whether the Java process still gives the error's text."""
    try:
        str(error)
    except SPARK_ENDED:
        return False
    return True
