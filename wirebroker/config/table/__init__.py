"""The table of configs: a row for each of Kafka's broker configs and each of wirebroker's, by area.

Source: Apache Kafka 4.4.0; a row's doc names deviations.
"""

from __future__ import annotations

from typing import Final

from wirebroker.config.rows.row import ConfigRow, Effect
from wirebroker.config.rows.topic import GIVING_ROWS
from wirebroker.config.table import (
    compaction,
    consumer_groups,
    delivery,
    groups,
    http,
    logs,
    network,
    nodes,
    own,
    quotas,
    remote,
    replication,
    security,
    share_members,
    share_partitions,
    streams_groups,
    tls,
    topics,
    transactions,
)

_AREAS: Final = (
    nodes,
    network,
    quotas,
    topics,
    groups,
    consumer_groups,
    share_members,
    share_partitions,
    streams_groups,
    transactions,
    logs,
    compaction,
    replication,
    remote,
    security,
    tls,
    own,
    http,
    delivery,
)


def _by_name() -> dict[str, ConfigRow]:
    rows = [*(row for area in _AREAS for row in area.ROWS), *GIVING_ROWS]
    named = {row.name: row for row in rows}
    assert len(named) == len(rows), "names in the table are unique"
    return named


ROWS: Final = _by_name()
BROKER_ROWS: Final = {
    name: row for name, row in ROWS.items() if row.effect in (Effect.READ, Effect.SHOWN)
}
ROWS_WITHOUT_EFFECT: Final = {name: ROWS[name] for name in sorted(ROWS.keys() - BROKER_ROWS.keys())}
# How a broker without --config deviates from Kafka's defaults, ten rows at most; docs/guide.md
# gives the reasons.
ONE_NODE_PROFILE: Final = {
    name: row.profile for name, row in ROWS.items() if row.profile is not None
}
