"""Quantiles of recent values, as in Kafka's metrics, from histograms of all values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.base.metric_field import Kind

if TYPE_CHECKING:
    from collections.abc import Collection

    from wirebroker.base.clock import Clock
    from wirebroker.base.integer_histogram import IntegerHistogram
    from wirebroker.metrics.page import Labels, Page

QUANTILES: Final = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)
# Recent values are one to two periods old at most.
_RECENT_S: Final = 60.0


class RecentQuantiles:
    """Remembers the histograms of one and two periods ago."""

    __slots__ = ("_before", "_clock", "_latest", "_now", "_rotated_s")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._before: dict[tuple[str, Labels], IntegerHistogram] = {}
        self._latest: dict[tuple[str, Labels], IntegerHistogram] = {}
        self._now: dict[tuple[str, Labels], IntegerHistogram] = {}
        self._rotated_s = clock.monotonic()

    def add(
        self,
        page: Page,
        name: str,
        doc: str,
        labels: Labels,
        values: IntegerHistogram,
        *,
        unit: int,
    ) -> None:
        """Add the quantiles of recent values to a page, if there are any.

        `unit` is the number of value units per unit of the metric.
        """
        key = (name, labels)
        self._now[key] = values.copy()
        before = self._before.get(key)
        recent = values if before is None else values.plus(before, -1)
        if recent.count:
            for share in QUANTILES:
                with_share = (("quantile", str(share)), *labels)
                page.add_one(name, Kind.GAUGE, doc, with_share, recent.quantile(share) / unit)

    def page_ends(self) -> None:
        """Note that a page is complete."""
        now_s = self._clock.monotonic()
        if now_s - self._rotated_s >= _RECENT_S:
            self._before, self._latest = self._latest, self._now
            self._rotated_s = now_s
        self._now = {}


def add_count(page: Page, name: str, labels: Labels, count: int, dialects: Collection[str]) -> None:
    """Add the number of a metric's values, by Strimzi's name."""
    if "strimzi" in dialects:
        doc = "Number of measured values."
        page.add_one(f"{name}_count_total", Kind.COUNTER, doc, labels, count)
