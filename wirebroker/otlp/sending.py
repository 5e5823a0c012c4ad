"""The process that sends metrics by OTLP: pages in, protobuf over HTTP out. The library's door.

    python -m wirebroker.otlp.sending ENDPOINT NODE-ID BEGAN-MS

It ends with the broker, whose end of the pipe is closed then. What the endpoint alone does not say
is said by OpenTelemetry's own variables (OTEL_EXPORTER_OTLP_HEADERS, _CERTIFICATE, _TIMEOUT,
OTEL_RESOURCE_ATTRIBUTES, …), which the library reads.

Source: OTLP 1.x, metrics; totals are cumulative since the broker began to send.
"""

from __future__ import annotations

import logging
import os
import sys
from typing import TYPE_CHECKING, Any, Final

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricExportResult,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from wirebroker.base.clock import SystemClock
from wirebroker.base.version import version_text
from wirebroker.otlp.frames import SENT, read_page
from wirebroker.otlp.page_reader import families_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wirebroker.otlp.page_reader import Family

_NICENESS: Final = 10
_NS_PER_MS: Final = 1_000_000
# Of whole numbers in protobuf.
_LARGEST: Final = 1 << 63
# Of what a collector says about a refusal.
_MOST_WORDS: Final = 500


def resource_of(node_id: str) -> Resource:
    """Return whose metrics they are; what OTEL_ variables say of it comes first."""
    ours = {"service.name": "wirebroker", "service.instance.id": node_id}
    return Resource.create(ours).merge(OTELResourceDetector().detect())


def metrics_of(
    families: Iterable[Family], *, resource: Resource, began_ns: int, now_ns: int
) -> MetricsData:
    """Return metrics as the library wants them.

    Args:
        families: As the page has them.
        resource: Whose they are.
        began_ns: Since when totals are counted, nanoseconds since 1970.
        now_ns: When the page was made.
    """
    metrics = [_metric(each, began_ns, now_ns) for each in families]
    scope = InstrumentationScope("wirebroker", version_text())
    scoped = ScopeMetrics(scope=scope, metrics=metrics, schema_url="")
    return MetricsData([ResourceMetrics(resource, [scoped], schema_url="")])


def _metric(family: Family, began_ns: int, now_ns: int) -> Metric:
    data: Gauge | Histogram | Sum
    if family.kind == "histogram":
        points = [_histogram(*each, began_ns, now_ns) for each in _by_labels(family)]
        data = Histogram(points, AggregationTemporality.CUMULATIVE)
    else:
        is_total = family.kind != "gauge"
        numbers = [
            NumberDataPoint(
                attributes=labels,
                start_time_unix_nano=began_ns if is_total else 0,
                time_unix_nano=now_ns,
                value=int(value) if value.is_integer() and abs(value) < _LARGEST else value,
            )
            for _, labels, value in family.samples
        ]
        cumulative = AggregationTemporality.CUMULATIVE
        data = Sum(numbers, cumulative, is_monotonic=True) if is_total else Gauge(numbers)
    return Metric(name=family.name, description=family.doc, unit="", data=data)


def _by_labels(family: Family) -> Iterable[tuple[dict[str, str], list[tuple[str, float]], float]]:
    """Return each histogram of a family: its labels, its counts up to each bound, its sum."""
    found: dict[tuple[tuple[str, str], ...], list[tuple[str, float]]] = {}
    for name, labels, value in family.samples:
        own = tuple((label, text) for label, text in labels.items() if label != "le")
        if name.endswith("_bucket"):
            found.setdefault(own, []).append((labels["le"], value))
        elif name.endswith("_sum"):
            yield dict(own), found.pop(own), value


def _histogram(
    labels: dict[str, str],
    up_to: list[tuple[str, float]],
    total: float,
    began_ns: int,
    now_ns: int,
) -> HistogramDataPoint:
    counts = [int(value) for _, value in up_to]
    return HistogramDataPoint(
        attributes=labels,
        start_time_unix_nano=began_ns,
        time_unix_nano=now_ns,
        count=counts[-1],
        sum=total,
        bucket_counts=[
            here - before for here, before in zip(counts, [0, *counts[:-1]], strict=True)
        ],
        explicit_bounds=[float(bound) for bound, _ in up_to[:-1]],
        # Not known of a page; protobuf leaves out what is None.
        min=None,  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        max=None,  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    )


class _LastWords(logging.Handler):
    """Remembers what the library has logged last: it says there why something was not sent."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        text = " ".join(record.getMessage().split())
        # An error that ends the retries says only that; each retry before it says why.
        is_end = record.levelno >= logging.ERROR and self.text
        self.text = (f"{text} {self.text}" if is_end else text)[:_MOST_WORDS]


def main() -> None:
    """Send pages until the broker ends."""
    endpoint, node_id, began_ms = sys.argv[1:]
    if hasattr(os, "nice"):
        os.nice(_NICENESS)
    words = _LastWords()
    logging.getLogger().addHandler(words)
    resource = resource_of(node_id)
    exporter: Any = OTLPMetricExporter(endpoint=endpoint)  # its methods take untyped arguments
    while (page := read_page(sys.stdin.buffer)) is not None:
        words.text = ""
        data = metrics_of(
            families_of(page),
            resource=resource,
            began_ns=int(began_ms) * _NS_PER_MS,
            now_ns=SystemClock().now_ms() * _NS_PER_MS,
        )
        is_sent = exporter.export(data) is MetricExportResult.SUCCESS
        sys.stdout.write(f"{SENT if is_sent else words.text or 'it says nothing about it'}\n")
        sys.stdout.flush()
    exporter.shutdown()


if __name__ == "__main__":
    main()
