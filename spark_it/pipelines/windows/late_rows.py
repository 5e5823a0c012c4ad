"""Detection of rows that are too late for their windows, so that a job can count each of them.

Spark first aggregates the rows of a window and key in a batch, and then drops and counts late
groups. This module compares each row's earliest window with the same watermark before that step.

The watermark is known when a batch starts, but the query's plan is the same for all batches. So the
driver reads it from the checkpoint and passes it to the tasks as a local property.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark import TaskContext
from pyspark.sql import functions

from wirebroker.codecs.json_text import parse_json

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import Column, DataFrame, SparkSession

_PROPERTY: Final = "wirebroker.late_watermark_ms"
_SEVERAL_OPERATORS: Final = "spark.sql.streaming.statefulOperator.allowMultiple"


def set_late_watermark(spark: SparkSession, folder: Path, batch: int) -> None:
    """Pass the watermark for late rows to the tasks that this thread starts.

    Args:
        spark: The session.
        folder: The folder of Spark's checkpoint.
        batch: The number of the current batch in Spark's checkpoint.
    """
    # Unless several stateful operators are forbidden, Spark compares late rows with the watermark
    # of the previous batch.
    allows_several = str(spark.conf.get(_SEVERAL_OPERATORS, "true")).lower() == "true"
    watermark = _watermark(folder / "offsets", batch - 1 if allows_several else batch)
    spark.sparkContext.setLocalProperty(_PROPERTY, str(watermark))


def task_late_watermark() -> int:
    """Return the watermark for late rows in a task, in ms since 1970; 0 if none is set."""
    context = TaskContext.get()
    text = context.getLocalProperty(_PROPERTY) if context is not None else None
    return int(text or 0)


def too_late(
    spark: SparkSession, time: Column, watermark_ms: Column, window: str, slide: str
) -> Column:
    """Return whether the earliest window of a time ended by the watermark.

    Runs two short Spark jobs to learn where windows lie.

    Args:
        spark: The session.
        time: The time of a row.
        watermark_ms: The watermark for late rows.
        window: The length of a window.
        slide: The time from one window's start to the next one's.

    Raises:
        AnalysisException: Spark does not understand the window or the slide.
    """
    # Windows repeat with the slide, so their position around the time 0 determines all of them.
    first_end = min(_window_ends(spark, window, slide))
    (step,) = _window_ends(spark, slide, slide)
    micros = functions.unix_micros(time)
    end = micros + step - functions.pmod(micros - first_end, functions.lit(step))
    return end <= watermark_ms * 1_000


def _watermark(offsets: Path, batch: int) -> int:
    """Return a batch's watermark, in ms since 1970, from Spark's log of offsets."""
    if batch < 0:
        return 0
    lines = (offsets / str(batch)).read_text(encoding="utf-8").splitlines()
    metadata = parse_json(lines[1])  # below the version
    return int(metadata["batchWatermarkMs"])


def _window_ends(spark: SparkSession, window: str, slide: str) -> list[int]:
    """Return the ends of the windows that hold the time 0, in microseconds since 1970."""
    zero: DataFrame = spark.range(1).select(functions.timestamp_micros("id").alias("time"))
    windows = zero.select(functions.window("time", window, slide).alias("window"))
    return [row[0] for row in windows.select(functions.unix_micros("window.end")).collect()]
