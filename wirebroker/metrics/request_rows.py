"""Metrics of requests by API.

Kafka's quantiles of recent requests are gauges, which cannot be added up over brokers; the
histogram `wirebroker_request_microseconds` can.

Source: Kafka's RequestMetrics; the names are those of the JMX exporter's rules.
"""

from __future__ import annotations

from collections import Counter
from functools import reduce
from typing import TYPE_CHECKING, Final

from wirebroker.base.integer_histogram import IntegerHistogram
from wirebroker.base.metric_field import Kind
from wirebroker.base.request_meters import FETCH_NAMES, Phase, RequestMeter
from wirebroker.codecs.errors import ErrorCode
from wirebroker.metrics.recent_quantiles import add_count

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from wirebroker.base.clock import Slices
    from wirebroker.base.request_meters import RequestMeters
    from wirebroker.metrics.page import Labels, Page
    from wirebroker.metrics.recent_quantiles import RecentQuantiles

_PREFIX: Final = "kafka_network_requestmetrics_"
# 64 us to 67 s, each four times the previous one.
_BOUNDS_US: Final = tuple(64 << 2 * power for power in range(11))
_US_IN_MS: Final = 1000

_DOCS: Final = {
    Phase.TOTAL: "Time of recent requests, in milliseconds, by quantile.",
    Phase.QUEUE: "Time of recent requests until their handler began; below 0.25 ms counts as 0.",
    Phase.LOCAL: "Time of recent requests in their handler, until it returned or had to wait.",
    Phase.REMOTE: "Time that recent requests waited for records, followers or the controller.",
    Phase.SEND: "Time of recent responses that the socket did not accept immediately.",
}


async def add_requests(
    page: Page,
    meters: RequestMeters,
    recent: RecentQuantiles,
    dialects: Collection[str],
    slices: Slices,
) -> None:
    """Add the rows of all APIs with requests."""
    for name, parts in _meters_by_name(meters).items():
        labels = (("request", name),)
        for phase in Phase:
            times = reduce(IntegerHistogram.plus, (meter.of(phase) for meter in parts))
            metric = _PREFIX + phase.value
            recent.add(page, metric, _DOCS[phase], labels, times, unit=_US_IN_MS)
            add_count(page, metric, labels, times.count, dialects)
        sizes = reduce(IntegerHistogram.plus, (meter.sizes for meter in parts))
        doc = "Bytes of recent requests, by quantile."
        recent.add(page, f"{_PREFIX}requestbytes", doc, labels, sizes, unit=1)
        add_count(page, f"{_PREFIX}requestbytes", labels, sizes.count, dialects)
        _add_errors(page, name, parts, dialects)
        if len(parts) == 1:  # a sum would count its parts twice
            _add_histogram(page, labels, parts[0].totals)
        await slices.turn()


def _meters_by_name(meters: RequestMeters) -> dict[str, list[RequestMeter]]:
    """Return the meters by name; as in Kafka, Fetch combines both kinds."""
    meters_by_name = {name: [meter] for name, meter in meters.by_name.items() if meter.sizes.count}
    if any(name in meters_by_name for name in FETCH_NAMES):
        meters_by_name["Fetch"] = [meters.by_name[name] for name in FETCH_NAMES]
    return meters_by_name


def _add_errors(
    page: Page, name: str, meters: Sequence[RequestMeter], dialects: Collection[str]
) -> None:
    doc = "Error codes in responses, counted for each partition or other part."
    counts: Counter[int] = Counter()
    for meter in meters:
        counts.update(meter.errors)
    names = [
        _PREFIX + metric
        for dialect, metric in (("strimzi", "errors_total"), ("confluent", "errorspersec"))
        if dialect in dialects
    ]
    for code, count in sorted(counts.items()):
        labels = (("error", ErrorCode(code).name), ("request", name))
        for metric in names:
            page.add_one(metric, Kind.COUNTER, doc, labels, count)


def _add_histogram(page: Page, labels: Labels, totals: IntegerHistogram) -> None:
    page.add_counts(
        "wirebroker_request_microseconds",
        "Time of all requests, in microseconds.",
        labels,
        [(bound, totals.count_to(bound)) for bound in _BOUNDS_US],
        total=totals.total,
        count=totals.count,
    )
