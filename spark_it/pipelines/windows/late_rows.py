"""Detection of each row that is too late for its earliest window.

Spark counts late groups, after it has aggregated a batch, so this module compares rows with the
watermark before. All batches share the query's plan, so the driver reads a batch's watermark from
the checkpoint and passes it to tasks as a local property.
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
    """Pass a batch's watermark, from Spark's checkpoint, to tasks that this thread starts."""
    # If several stateful operators are allowed, Spark uses the previous batch's watermark.
    allows_several = str(spark.conf.get(_SEVERAL_OPERATORS, "true")).lower() == "true"
    watermark = _watermark(folder / "offsets", batch - 1 if allows_several else batch)
    spark.sparkContext.setLocalProperty(_PROPERTY, str(watermark))


def task_late_watermark() -> int:
    """Return the watermark in a task, in ms since 1970; 0 if none is set."""
    context = TaskContext.get()
    text = context.getLocalProperty(_PROPERTY) if context is not None else None
    return int(text or 0)


def too_late(
    spark: SparkSession, time: Column, watermark_ms: Column, window: str, slide: str
) -> Column:
    """Return whether the earliest window of a time ended by the watermark.

    Runs two short Spark jobs to find the windows' bounds.

    Raises:
        AnalysisException: Spark does not understand the window or the slide.
    """
    # Windows repeat with the slide, so those around time 0 determine all.
    first_end = min(_window_ends(spark, window, slide))
    (step,) = _window_ends(spark, slide, slide)
    micros = functions.unix_micros(time)
    end = micros + step - functions.pmod(micros - first_end, functions.lit(step))
    return end <= watermark_ms * 1_000


def _watermark(offsets: Path, batch: int) -> int:
    """Return a batch's watermark in Spark's log of offsets, in ms since 1970."""
    if batch < 0:
        return 0
    lines = (offsets / str(batch)).read_text(encoding="utf-8").splitlines()
    metadata = parse_json(lines[1])  # after the version
    return int(metadata["batchWatermarkMs"])


def _window_ends(spark: SparkSession, window: str, slide: str) -> list[int]:
    """Return the ends of the windows that contain time 0, in microseconds."""
    zero: DataFrame = spark.range(1).select(functions.timestamp_micros("id").alias("time"))
    windows = zero.select(functions.window("time", window, slide).alias("window"))
    return [row[0] for row in windows.select(functions.unix_micros("window.end")).collect()]
