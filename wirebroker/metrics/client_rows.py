"""Rows of the metrics that clients push (KIP-714), and of their broker's part in it.

Source: Kafka's ClientMetricsManager; the names of clients' series: client_metrics/series.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.base.metric_field import Kind
from wirebroker.metrics.page import label_texts
from wirebroker.metrics.rows import ShownRow

if TYPE_CHECKING:
    from wirebroker.base.clock import Slices
    from wirebroker.client_metrics.client_metrics import ClientMetrics
    from wirebroker.metrics.page import Page

_JMX: Final = "kafka_server_client_metrics_"

CLIENT_ROWS: Final[tuple[ShownRow[ClientMetrics], ...]] = (
    ShownRow("Clients that push metrics.", len, jmx=f"{_JMX}instance_count"),
    ShownRow(
        "Pushes of metrics with another subscription than the client has.",
        lambda each: each.unknown_subscriptions,
        kind=Kind.COUNTER,
        jmx=f"{_JMX}unknown_subscription_request_count",
    ),
    ShownRow(
        "Requests of clients with metrics that came before their interval was over.",
        lambda each: each.throttled,
        kind=Kind.COUNTER,
        own="wirebroker_telemetry_throttled_total",
    ),
    ShownRow(
        "Pushes of metrics that could not be read.",
        lambda each: each.unreadable,
        kind=Kind.COUNTER,
        own="wirebroker_telemetry_unreadable_total",
    ),
    ShownRow(
        "Series of clients on this page.",
        lambda each: len(each.series),
        own="wirebroker_telemetry_series",
    ),
    ShownRow(
        "Data points of clients that were dropped, because there were too many series.",
        lambda each: each.series.dropped,
        kind=Kind.COUNTER,
        own="wirebroker_telemetry_dropped_total",
    ),
)
_DOC: Final = "Pushed by clients."


async def add_client_metrics(page: Page, client_metrics: ClientMetrics, slices: Slices) -> None:
    """Add the series of the clients that are connected."""
    await slices.run(client_metrics.remove_gone())
    await slices.run(page.add(CLIENT_ROWS, [(label_texts(()), client_metrics)]))
    for key, value in client_metrics.series.series():
        page.add_one(key.name, key.kind, _DOC, key.labels, value)
        await slices.turn()
