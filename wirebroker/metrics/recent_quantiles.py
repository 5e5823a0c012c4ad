"""Quantiles of recent values, as Kafka's metrics give them, from histograms of all values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.base.metric_field import Kind

if TYPE_CHECKING:
    from collections.abc import Collection

    from wirebroker.base.clock import Clock
    from wirebroker.base.integer_histogram import IntegerHistogram
    from wirebroker.metrics.page import Labels, Page

QUANTILES: Final = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)
# Recent values are those since one to two such periods ago.
_RECENT_S: Final = 60.0


class RecentQuantiles:
    """Remembers what histograms held one and two periods ago."""

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
        """Add the quantiles of a metric's recent values to a page, none if there was no value.

        Args:
            page: Where they are shown.
            name: The metric's.
            doc: One sentence.
            labels: What this series is told apart by.
            values: All values.
            unit: As many of a value's units are one of the metric's.
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
        """Note that the metrics of a page have been added."""
        now_s = self._clock.monotonic()
        if now_s - self._rotated_s >= _RECENT_S:
            self._before, self._latest = self._latest, self._now
            self._rotated_s = now_s
        self._now = {}


def add_count(page: Page, name: str, labels: Labels, count: int, dialects: Collection[str]) -> None:
    """Add how many values a metric's quantiles are of, under the name of Strimzi's rules."""
    if "strimzi" in dialects:
        doc = "Values that were measured."
        page.add_one(f"{name}_count_total", Kind.COUNTER, doc, labels, count)
