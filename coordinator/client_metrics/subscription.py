"""Subscriptions: the configs of a client metrics resource.

Source: Kafka's ClientMetricsConfigs and ClientMetricsInstanceMetadata.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.config.client_metrics import (
    CLIENT_METRICS_ROWS,
    INTERVAL,
    MATCH,
    MAX_INTERVAL_MS,
    METRICS,
    MIN_INTERVAL_MS,
    parsed_client_metrics,
)
from wirebroker.config.rows.row import ConfigError
from wirebroker.coordinator.patterns import compile_pattern

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Mapping

ATTRIBUTES: Final = frozenset(
    {
        "client_id",
        "client_instance_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)
# Of one compiled pattern.
_MOST_PATTERN_BYTES: Final = 1 << 16
# There are six attributes; each pattern takes up to a millisecond.
_MOST_PATTERNS: Final = 16


class Subscription(NamedTuple):
    """What clients with matching attributes push.

    Attributes:
        metrics: Prefixes of names, or `*`.
        patterns: By attribute; all must match.
    """

    metrics: tuple[str, ...]
    interval_ms: int
    patterns: Mapping[str, re.Pattern[str]]

    def matches(self, attributes: Mapping[str, str | None]) -> bool:
        """Return whether a client with these attributes is meant."""
        return all(
            (value := attributes[name]) is not None and pattern.fullmatch(value) is not None
            for name, pattern in self.patterns.items()
        )


def subscription_of(name: str, configs: Mapping[str, str]) -> Subscription:
    """Return the subscription of a resource with these configs.

    Raises:
        KafkaError: INVALID_REQUEST: no name, an unknown config or an interval out of range;
            INVALID_CONFIG: a value of the wrong type, or an invalid pattern.
    """
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
    for config in configs:
        if config not in CLIENT_METRICS_ROWS:
            message = f"Unknown client metrics configuration: {config}"
            raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    try:
        values = parsed_client_metrics(configs)
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from None
    metrics, interval_ms, match = values[METRICS], values[INTERVAL], values[MATCH]
    assert isinstance(metrics, tuple)
    assert isinstance(interval_ms, int)
    assert isinstance(match, tuple)
    if not MIN_INTERVAL_MS <= interval_ms <= MAX_INTERVAL_MS:
        message = f"Invalid value {interval_ms} for {INTERVAL}, interval must be between"
        message += f" {MIN_INTERVAL_MS} and {MAX_INTERVAL_MS} (1 hour)"
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    return Subscription(metrics, interval_ms, _patterns(match))


def _patterns(texts: Iterable[str]) -> dict[str, re.Pattern[str]]:
    patterns: dict[str, re.Pattern[str]] = {}
    for count, text in enumerate(texts, 1):
        if count > _MOST_PATTERNS:
            message = f"More than {_MOST_PATTERNS} client matching patterns"
            raise KafkaError(ErrorCode.INVALID_CONFIG, message)
        # As Java's String.split, which drops empty parts at the end.
        attribute, *others = text.rstrip("=").split("=")
        if len(others) != 1 or attribute.strip() not in ATTRIBUTES:
            raise _illegal(text)
        try:
            pattern = compile_pattern(others[0].strip(), _MOST_PATTERN_BYTES)
        except KafkaError:
            raise _illegal(text) from None
        patterns[attribute.strip()] = pattern
    return patterns


def _illegal(text: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {text}")
