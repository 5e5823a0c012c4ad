"""Metrics of one instance, in Prometheus' text format."""

from __future__ import annotations

import threading
from bisect import bisect_left
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.delivery.pending.store import saved_due_counts

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from wirebroker.base.clock import Clock
    from wirebroker.delivery.pending.partition import PendingPartition
    from wirebroker.delivery.pending.plan import TransactionPlan

# Upper bounds of lateness, in milliseconds.
_LATENESS_MS: Final = (5, 10, 25, 50, 100, 250, 500, 1_000, 5_000, 30_000, 300_000)
# Pending records due within these times, in seconds.
_HORIZONS_S: Final = (0, 60, 3_600, 86_400)
_COUNTED_EVERY_S: Final = 60.0
_MOST_MS: Final = (1 << 62) - 1
_COUNTED: Final = ("received", "delivered", "retried", "dead_letters", "transactions")


class _Counted(NamedTuple):
    """The pending records of a partition by horizon, and when they were counted."""

    at: float
    counts: list[int]


class DeliveryFigures:
    """Counters, written by the instance's thread and read by the page's."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._counts = dict.fromkeys(_COUNTED, 0)
        self._lateness = [0] * (len(_LATENESS_MS) + 1)
        self._lateness_sum_ms = 0
        # Replaced as a whole, so the page's threads may read it.
        self._paths: dict[int, Path | None] = {}
        self._counting = threading.Lock()
        self._pending: dict[int, _Counted] = {}
        self._ready_count = 0

    def count(self, plan: TransactionPlan) -> None:
        """Add a committed transaction."""
        now_ms = self._clock.now_ms()
        with self._lock:
            self._counts["received"] += plan.received
            self._counts["delivered"] += plan.delivered
            self._counts["retried"] += plan.retried
            self._counts["dead_letters"] += len(plan.letters)
            self._counts["transactions"] += 1
            for due_ms in plan.due_ms:
                late_ms = max(now_ms - due_ms, 0)  # a producer's clock may be ahead
                self._lateness[bisect_left(_LATENESS_MS, late_ms)] += 1
                self._lateness_sum_ms += late_ms

    def observe(self, partitions: Collection[PendingPartition]) -> None:
        """Note the assigned partitions, whose pending records `page` counts."""
        self._ready_count = sum(partition.is_ready for partition in partitions)
        self._paths = {partition.number: partition.store.path for partition in partitions}

    def _count_pending(self) -> list[int]:
        """Return how many records are pending, by horizon; runs in the thread of the page.

        The time of counting grows with the pending records, and due records must not wait for it.
        """
        paths = self._paths
        with self._counting:
            for number in self._pending.keys() - paths.keys():
                del self._pending[number]
            for number, path in paths.items():
                counted = self._pending.get(number)
                now = self._clock.monotonic()
                if counted is not None and now - counted.at < _COUNTED_EVERY_S:
                    continue
                now_ms = self._clock.now_ms()
                limits = [*(now_ms + 1000 * seconds for seconds in _HORIZONS_S), _MOST_MS]
                counts = saved_due_counts(path, limits) if path is not None else None
                if counts is not None:
                    self._pending[number] = _Counted(now, counts)
            columns = list(zip(*(each.counts for each in self._pending.values()), strict=True))
        return [sum(column) for column in columns] or [0] * (len(_HORIZONS_S) + 1)

    def page(self) -> str:
        """Return the metrics page."""
        pending = self._count_pending()
        with self._lock:
            counts, lateness = dict(self._counts), list(self._lateness)
            lateness_sum_s = self._lateness_sum_ms / 1000
        lines: list[str] = []
        for name, count in counts.items():
            metric = f"wirebroker_delivery_{name}_total"
            lines += [f"# HELP {metric} {_HELP[name]}", f"# TYPE {metric} counter"]
            lines.append(f"{metric} {count}")
        metric = "wirebroker_delivery_pending"
        lines += [f"# HELP {metric} {_HELP['pending']}", f"# TYPE {metric} gauge"]
        bounds = [*map(str, _HORIZONS_S), "+Inf"]
        lines += [
            f'{metric}{{within_seconds="{bound}"}} {count}'
            for bound, count in zip(bounds, pending, strict=True)
        ]
        metric = "wirebroker_delivery_partitions"
        lines += [f"# HELP {metric} {_HELP['partitions']}", f"# TYPE {metric} gauge"]
        lines.append(f"{metric} {self._ready_count}")
        return "\n".join([*lines, *_histogram(lateness, lateness_sum_s), ""])


def _histogram(counts: list[int], sum_s: float) -> list[str]:
    metric = "wirebroker_delivery_lateness_seconds"
    lines = [f"# HELP {metric} {_HELP['lateness']}", f"# TYPE {metric} histogram"]
    total = 0
    for bound, count in zip([*(ms / 1000 for ms in _LATENESS_MS), "+Inf"], counts, strict=True):
        total += count
        lines.append(f'{metric}_bucket{{le="{bound}"}} {total}')
    return [*lines, f"{metric}_sum {sum_s}", f"{metric}_count {total}"]


_HELP: Final = {
    "received": "Input records that were stored or became dead letters.",
    "delivered": "Records delivered to their targets, retries included.",
    "retried": "Retried records returned to their topics.",
    "dead_letters": "Records that became dead letters.",
    "transactions": "Committed transactions.",
    "pending": "Pending records that are due within a period, counted at most once a minute.",
    "partitions": "Partitions of the pending topic from which this instance delivers.",
    "lateness": "Time from a record's due time, or its timestamp if that is later, to the commit of"
    " its delivery.",
}
