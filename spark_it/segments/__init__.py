"""A Spark data source over the segments of a log directory; spark_it/README.md is its guide.

    spark.dataSource.register(wirebroker.segments.SegmentDataSource)
    spark.read.format("wirebroker-segments").option("path", LOG_DIR).option("subscribe", TOPIC)

Only `data_source` and `stream` need PySpark, only `arrow_rows` PyArrow, so SegmentDataSource is
imported when it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wirebroker.segments.data_source import SegmentDataSource

__all__ = ["SegmentDataSource"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(name)
    from wirebroker.segments import data_source

    return getattr(data_source, name)
