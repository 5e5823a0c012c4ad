"""Spark for a job: its settings, and what jobs cannot do without."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from wirebroker.pipelines.errors import PipelineError

if TYPE_CHECKING:
    from collections.abc import Mapping


def start_spark(name: str, settings: Mapping[str, Any]) -> SparkSession:
    """Start Spark, or return the one that runs; what the file says comes before what stands here.

    Args:
        name: Of the application.
        settings: Of Spark, as the job's file has them.

    Raises:
        PipelineError: It does not start; what Java said stands on standard error.
    """
    # Workers of another Python than this one would not have these modules.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    ours = {
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        # Spark's 200 are tasks, and state on disk, for each batch: most of what a small one costs.
        "spark.sql.shuffle.partitions": "16",
    }
    for key, value in (ours | dict(settings)).items():
        builder = builder.config(key, str(value).lower() if isinstance(value, bool) else value)
    try:
        spark = builder.getOrCreate()
    except PySparkRuntimeError as error:
        raise PipelineError(
            f"Spark does not start (Java 17 or later must be on PATH, or in JAVA_HOME): {error}"
        ) from error
    spark.sparkContext.setLogLevel(str(settings.get("spark.log.level", "ERROR")))
    return spark
