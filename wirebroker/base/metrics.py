"""The table of metrics: one field with its row for each metric of a broker.

    metrics.requests_late += 1
    metrics.connections_opened[listener] += 1     # one number for each value of a label
    metrics.loop_hold_ms.record(held_ms)

Counting needs no lookup, lock or call. Values that another part already has are gauges.

Names are those of Kafka's metrics in dashboards (Strimzi's rules), or begin with `wirebroker_`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from wirebroker.base.metric_field import counted, counter, counters, gauge, histogram
from wirebroker.base.request_meters import RequestMeters

if TYPE_CHECKING:
    from collections import Counter

    from wirebroker.base.metric_field import Gauge, Histogram

LOAD_BOUNDS_MS: Final = (1.0, 5.0, 10.0, 50.0, 100.0, 500.0, 1000.0, 5000.0, 30_000.0)
# Durations of loop turns; docs/design.md allows 20 ms.
HOLD_BOUNDS_MS: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 20.0, 50.0, 100.0, 1000.0)


@dataclass(slots=True, eq=False)
class Metrics:
    """Metrics of one broker."""

    request_meters: RequestMeters = field(default_factory=RequestMeters)

    loop_hold_ms: Histogram = histogram(
        "wirebroker_loop_hold_milliseconds",
        "Duration of the event loop's iterations.",
        HOLD_BOUNDS_MS,
    )
    connection_count: Gauge = gauge(
        "kafka_server_socket_server_metrics_connection_count",
        "Open connections.",
        "listener",
    )
    connections_opened: Counter[str] = counters(
        "kafka_server_socket_server_metrics_connection_creation_total",
        "Connections that were accepted and served.",
        "listener",
    )
    connections_closed: Counter[str] = counters(
        "kafka_server_socket_server_metrics_connection_close_total",
        "Connections that were served and are closed.",
        "listener",
    )
    connections_expired: Counter[str] = counters(
        "kafka_server_socket_server_metrics_expired_connections_killed_count",
        "Connections that were closed because they were idle.",
        "listener",
    )
    connections_refused: Counter[str] = counters(
        "wirebroker_connections_refused_total",
        "Connections that were closed immediately: their address had too many.",
        "listener",
    )
    connections_throttled: int = counter(
        "wirebroker_connections_throttled_total",
        "Connections that were closed after a delay: their address exceeded its quota.",
    )
    throttle_ms: Gauge = counted(
        "wirebroker_throttle_milliseconds_total",
        "Time for which clients were throttled by their quotas.",
        "quota",
    )
    throttled: Gauge = counted(
        "wirebroker_throttled_requests_total",
        "Requests after which their clients were throttled by their quotas.",
        "quota",
    )
    requests: Gauge = counted(
        "kafka_network_requestmetrics_requests_total",
        "Requests that were parsed and passed to their handler.",
        "request,version",
    )
    requests_late: int = counter(
        "wirebroker_requests_late_total",
        "Requests that did not arrive completely in time; their connections were closed.",
    )
    request_memory_bytes: Gauge = gauge(
        "kafka_network_socketserver_memorypoolused",
        "Memory that the requests in flight of all connections hold.",
    )
    share_fetches: int = counter(
        "kafka_server_brokertopicmetrics_totalsharefetchrequests_total",
        "ShareFetch requests, one for each topic.",
    )
    failed_share_fetches: int = counter(
        "kafka_server_brokertopicmetrics_failedsharefetchrequests_total",
        "Partitions of ShareFetch requests that failed.",
    )
    share_acknowledge_requests: int = counter(
        "kafka_server_brokertopicmetrics_totalshareacknowledgementrequests_total",
        "Requests with acknowledgements of share groups.",
    )
    failed_share_acknowledgements: int = counter(
        "kafka_server_brokertopicmetrics_failedshareacknowledgementrequests_total",
        "Partitions whose acknowledgements failed.",
    )
    share_acknowledgements: Counter[str] = counters(
        "kafka_server_sharegroupmetrics_recordacknowledgements_total",
        "Records that members of share groups acknowledged.",
        "ackType",
    )
    share_load_ms: Histogram = histogram(
        "wirebroker_share_partition_load_milliseconds",
        "Duration of loading a share partition.",
        LOAD_BOUNDS_MS,
    )
    share_lock_timeouts: int = counter(
        "kafka_server_sharepartitionmetrics_acquisitionlocktimeout_total",
        "Records whose acquisition locks expired.",
    )
    share_sessions: Gauge = gauge(
        "kafka_server_sharesessioncache_sharesessionscount",
        "Share sessions.",
    )
    share_session_partitions: Gauge = gauge(
        "kafka_server_sharesessioncache_sharepartitionscount",
        "Partitions in all share sessions.",
    )
    share_session_evictions: int = counter(
        "kafka_server_sharesessioncache_sharesessionevictions_total",
        "Share sessions that ended with their connections.",
    )
    dead_letters: int = counter(
        "wirebroker_share_dead_letters_total",
        "Records of share groups that were written to dead-letter topics.",
    )
    failed_dead_letters: int = counter(
        "wirebroker_share_dead_letters_failed_total",
        "Records of share groups that were archived without a dead letter.",
    )
