"""Spark jobs (guide: spark_it/README.md).

`exactly_once` is imported on first use, because it needs PySpark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wirebroker.pipelines.delivery.batch_delivery import ExactlyOnce, exactly_once

__all__ = ["ExactlyOnce", "exactly_once"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(name)
    from wirebroker.pipelines.delivery import batch_delivery

    return getattr(batch_delivery, name)
