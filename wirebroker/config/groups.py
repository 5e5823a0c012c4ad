"""Rows of group configs, which the served group protocols do not read.

Most take their default from the broker config `group.<name>`.

Source: Kafka 4.4.0's GroupConfig.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from wirebroker.config.rows.forms import kept
from wirebroker.config.rows.row import ConfigType
from wirebroker.config.table import ROWS

if TYPE_CHECKING:
    from wirebroker.config.rows.row import ConfigRow

_WITH_BROKER_DEFAULT: Final = (
    "consumer.assignment.interval.ms",
    "consumer.heartbeat.interval.ms",
    "consumer.session.timeout.ms",
    "share.assignment.interval.ms",
    "share.delivery.count.limit",
    "share.heartbeat.interval.ms",
    "share.partition.max.record.locks",
    "share.record.lock.duration.ms",
    "share.session.timeout.ms",
    "streams.assignment.interval.ms",
    "streams.heartbeat.interval.ms",
    "streams.initial.rebalance.delay.ms",
    "streams.num.standby.replicas",
    "streams.rack.aware.assignment.tags",
    "streams.session.timeout.ms",
)


def _given(name: str, type_: ConfigType | None, giver: str) -> ConfigRow:
    row = ROWS[giver]
    return replace(row, name=name, type=type_ or row.type, synonyms=(giver,))


_ALL: Final = (
    *(_given(name, None, f"group.{name}") for name in _WITH_BROKER_DEFAULT),
    # Takes the first item of the broker's list.
    _given("streams.assignor.name", ConfigType.STRING, "group.streams.assignors"),
    *kept(
        "share groups (KIP-932) are not served.",
        """
        errors.deadletterqueue.copy.record.enable boolean false - cluster-wide
        errors.deadletterqueue.topic.name string "" - cluster-wide
        share.auto.offset.reset string latest - cluster-wide
        share.isolation.level string read_uncommitted - cluster-wide
        share.renew.acknowledge.enable boolean true - cluster-wide
        """,
    ),
)
GROUP_ROWS: Final = {row.name: row for row in _ALL}
