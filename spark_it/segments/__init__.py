"""A Spark data source over the segments of log directories (guide: spark_it/README.md).

    spark.dataSource.register(wirebroker.segments.SegmentDataSource)
    spark.read.format("wirebroker-segments").option("path", LOG_DIR).option("subscribe", TOPIC)

SegmentDataSource is imported on first use, because it needs PySpark and PyArrow.
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
