"""Whole jobs on Spark, `python -m wirebroker.pipelines`; spark_it/README.md is their guide.

`exactly_once` gives the jobs' delivery to queries of one's own. It is imported when it is asked
for: what needs no PySpark does without.
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
