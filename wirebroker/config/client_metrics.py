"""Configs of client metrics: which metrics which clients push, and how often (KIP-714).

Source: Kafka 4.4.0's ClientMetricsConfigs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.config.rows.forms import integer, items
from wirebroker.config.rows.row import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.config.rows.row import ConfigValue

METRICS: Final = "metrics"
INTERVAL: Final = "interval.ms"
MATCH: Final = "match"
DEFAULT_INTERVAL_MS: Final = 300_000
MIN_INTERVAL_MS: Final = 100
MAX_INTERVAL_MS: Final = 3_600_000


def _items_wish(value: ConfigValue) -> str | None:
    assert isinstance(value, tuple)
    return "its items must not be empty" if "" in value else None


CLIENT_METRICS_ROWS: Final = {
    row.name: row
    for row in (
        items(METRICS, "", "Prefixes of the names of metrics; `*` is all.", check=_items_wish),
        # Kafka's error of its range differs from that of its type.
        integer(INTERVAL, DEFAULT_INTERVAL_MS, "Interval at which clients push, 100 to 3,600,000."),
        items(
            MATCH,
            "",
            "Clients that push, as `name=pattern`; all patterns must match. Names: client_id, "
            "client_instance_id, client_software_name, client_software_version, "
            "client_source_address, client_source_port.",
            check=_items_wish,
        ),
    )
}


def parsed_client_metrics(overrides: Mapping[str, str]) -> dict[str, ConfigValue]:
    """Return the values of all three configs, lists without repetitions.

    Raises:
        ConfigError: A value has the wrong type.
    """
    return {
        name: _without_repetitions(
            row.parse(overrides[name]) if name in overrides else row.default_value()
        )
        for name, row in CLIENT_METRICS_ROWS.items()
    }


def readable_client_metrics(overrides: Mapping[str, str]) -> dict[str, ConfigValue]:
    """Return the values, without those of another release that cannot be read."""
    usable = dict(overrides)
    for name, text in overrides.items():
        try:
            parsed_client_metrics({name: text})
        except ConfigError:
            del usable[name]
    return parsed_client_metrics(usable)


def _without_repetitions(value: ConfigValue) -> ConfigValue:
    return tuple(dict.fromkeys(value)) if isinstance(value, tuple) else value
