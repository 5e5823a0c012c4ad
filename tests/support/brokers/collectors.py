"""Collectors of the console on a test broker."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from wirebroker.base.clock import SystemClock
from wirebroker.console.model.collector import Collector
from wirebroker.console.model.settings import ClusterSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from wirebroker.console.model.snapshot import ClusterSnapshot

# Polls are this much faster than in the console.
_PACE = 0.02


@contextlib.asynccontextmanager
async def collecting(
    bootstrap: str, properties: Mapping[str, str] | None = None
) -> AsyncIterator[Collector]:
    collector = Collector(
        ClusterSettings("test", bootstrap, properties or {}), SystemClock(), pace=_PACE
    )
    await collector.start()
    try:
        yield collector
    finally:
        await collector.stop()


async def snapshot_when(
    collector: Collector, is_wanted: Callable[[ClusterSnapshot], object]
) -> ClusterSnapshot:
    """Wait for a snapshot that meets a condition."""
    with collector.subscribe() as reader:
        while True:
            snapshot = await reader.next()
            if is_wanted(snapshot):
                return snapshot
