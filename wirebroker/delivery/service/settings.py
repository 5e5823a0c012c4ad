"""Settings of the service: rows `wirebroker.delivery.*` of the config table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from wirebroker.config.rows.row import ConfigError
from wirebroker.delivery.model.rules import DeliveryRules

if TYPE_CHECKING:
    from wirebroker.config import Config

_LONGEST_GROUP: Final = 200


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """Settings of one instance.

    Attributes:
        rules: What it accepts.
        kafka: Settings of librdkafka: the cluster, TLS and the login.
        directory: Its id and its indexes.
        partitions: Of the topics that it creates.
        replication_factor: Of the topics that it creates; -1 for the cluster's default.
        transaction_records: The most of each kind in a transaction.
        transaction_timeout_ms: See the config.
        session_timeout_ms: See the config.
        metrics_port: On 127.0.0.1; 0 for none.
    """

    rules: DeliveryRules
    kafka: dict[str, str]
    directory: Path
    partitions: int
    replication_factor: int
    transaction_records: int
    transaction_timeout_ms: int
    session_timeout_ms: int
    metrics_port: int

    @property
    def user(self) -> str:
        """The SASL user name, or ""."""
        return self.kafka.get("sasl.username", "")


def rules_of(config: Config) -> DeliveryRules:
    """Return the rules.

    Raises:
        ConfigError: Settings contradict each other.
    """
    group = config.str("wirebroker.delivery.group")
    # A consumer cannot subscribe to a topic twice.
    deliver = tuple(dict.fromkeys(config.list("wirebroker.delivery.topics")))
    retry = tuple(dict.fromkeys(config.list("wirebroker.delivery.retry.topics")))
    both = set(deliver) & set(retry)
    if both:
        raise ConfigError(
            f"{min(both)} is in wirebroker.delivery.topics and in wirebroker.delivery.retry.topics"
        )
    if not deliver and not retry:
        raise ConfigError("wirebroker.delivery.topics is empty: name an input topic")
    if not group or len(group) > _LONGEST_GROUP:
        raise ConfigError(
            f"wirebroker.delivery.group names a topic: use 1 to {_LONGEST_GROUP} characters"
        )
    has_targets = config.is_set("wirebroker.delivery.targets")
    try:
        return DeliveryRules(
            group=group,
            deliver_topics=deliver,
            retry_topics=retry,
            pending_topic=pending_topic_of(group),
            targets=config.list("wirebroker.delivery.targets") if has_targets else None,
            max_delay_ms=config.int("wirebroker.delivery.max.delay.ms"),
            max_attempts=config.int("wirebroker.delivery.max.attempts"),
        )
    except ValueError as error:
        raise ConfigError(str(error)) from None


def pending_topic_of(group: str) -> str:
    """Return the name of a service's pending topic."""
    return f"__{group}"


def service_settings(config: Config, kafka: dict[str, str]) -> ServiceSettings:
    """Return the settings of an instance.

    Raises:
        ConfigError: See `rules_of`.
    """
    return ServiceSettings(
        rules=rules_of(config),
        kafka=kafka,
        directory=Path(config.str("wirebroker.delivery.directory")),
        partitions=config.int("wirebroker.delivery.partitions"),
        replication_factor=config.int("wirebroker.delivery.replication.factor"),
        transaction_records=config.int("wirebroker.delivery.transaction.records"),
        transaction_timeout_ms=config.int("wirebroker.delivery.transaction.timeout.ms"),
        session_timeout_ms=config.int("wirebroker.delivery.session.timeout.ms"),
        metrics_port=config.int("wirebroker.delivery.metrics.port"),
    )
