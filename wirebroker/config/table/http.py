"""Configs of the HTTP server (health, metrics)."""

from __future__ import annotations

from typing import Final

from wirebroker.config.rows.forms import boolean, items
from wirebroker.config.rows.row import ConfigRow, ConfigType

ROWS: Final = (
    items(
        "wirebroker.http.listeners",
        None,
        "Addresses (HOST:PORT) that serve /metrics, /ready and /live over HTTP; none if unset. "
        "Beyond this machine only with wirebroker.http.token or wirebroker.http.open.",
    ),
    ConfigRow(
        name="wirebroker.http.token",
        type=ConfigType.PASSWORD,
        default=None,
        doc="Token that HTTP requests other than /ready and /live must send, in plain text "
        "(Authorization: Bearer).",
    ),
    boolean(
        "wirebroker.http.open",
        False,
        "Serve HTTP beyond this machine without a token: anyone who can connect can read the "
        "names of topics and groups.",
    ),
    items(
        "wirebroker.metrics.dialects",
        "exporter,strimzi",
        "Names under which /metrics shows Kafka's metrics: exporter (kafka_exporter, Grafana "
        "7589), strimzi (Strimzi's rules for the JMX exporter), confluent (Confluent's rules), "
        "kminion.",
        choices=("exporter", "strimzi", "confluent", "kminion"),
    ),
    boolean(
        "wirebroker.http.optional",
        False,
        "Start with a warning and without HTTP if the HTTP port is in use; otherwise the broker "
        "does not start.",
    ),
)
