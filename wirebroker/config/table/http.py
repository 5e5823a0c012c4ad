"""What is served over HTTP: health, metrics; and metrics that are sent by it."""

from __future__ import annotations

from typing import Final

from wirebroker.config.rows.forms import boolean, integer, items, text
from wirebroker.config.rows.row import ConfigRow, ConfigType

ROWS: Final = (
    items(
        "wirebroker.http.listeners",
        None,
        "Where HTTP is served, HOST:PORT: /metrics, /ready and /live. Nowhere if unset. Beyond "
        "this machine with a token alone, or by wirebroker.http.open.",
    ),
    ConfigRow(
        name="wirebroker.http.token",
        type=ConfigType.PASSWORD,
        default=None,
        doc="What HTTP requests other than /ready and /live must bring, as Authorization: Bearer; "
        "it goes over the network as it is.",
    ),
    boolean(
        "wirebroker.http.open",
        False,
        "HTTP may be served beyond this machine without a token: whoever can connect reads the "
        "names of topics and groups.",
    ),
    items(
        "wirebroker.metrics.dialects",
        "exporter,strimzi",
        "The names under which /metrics shows what Kafka has: exporter, kafka_exporter's (Grafana "
        "7589); strimzi, those of Strimzi's rules for the JMX exporter; confluent, those of "
        "Confluent's; kminion's.",
        choices=("exporter", "strimzi", "confluent", "kminion"),
    ),
    boolean(
        "wirebroker.http.optional",
        False,
        "An HTTP port that is in use is warned of and done without; else the broker does not "
        "start.",
    ),
    text(
        "wirebroker.otlp.endpoint",
        "",
        "Where metrics are sent by OTLP, protobuf over HTTP: http://HOST:4318, or the whole "
        "address that they are posted to; nowhere if empty. Needs `pip install "
        "'wirebroker[otlp]'`, whose OTEL_EXPORTER_OTLP_HEADERS and the like are heeded.",
    ),
    integer(
        "wirebroker.otlp.interval.ms",
        60_000,
        "Time between two of them.",
        1000,
    ),
)
