"""The table of configs: a row for each that a broker of Kafka's has, and each of ours, by areas.

A new config is a row in the file of its area; everything else is made of the rows: DescribeConfigs,
docs/configs.md, what may be changed while the broker runs, what asks for protection, hints. The
rows of the broker configs that give topics their defaults come from the topics' (topic.py).

A leaf.  Source: names, types, defaults, ranges and levels are Apache Kafka 4.4.0's; what deviates
says so in its doc.
"""

from __future__ import annotations

from typing import Final

from wirebroker.config.rows.row import ConfigRow, Effect
from wirebroker.config.rows.topic import GIVING_ROWS
from wirebroker.config.table import (
    compaction,
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
    transactions,
    logs,
    compaction,
    replication,
    remote,
    security,
    tls,
    own,
    http,
)


def _by_name() -> dict[str, ConfigRow]:
    rows = [*(row for area in _AREAS for row in area.ROWS), *GIVING_ROWS]
    named = {row.name: row for row in rows}
    assert len(named) == len(rows), "a name stands in the table once"
    return named


ROWS: Final = _by_name()
# What every broker has and shows.
BROKER_ROWS: Final = {
    name: row for name, row in ROWS.items() if row.effect in (Effect.READ, Effect.SHOWN)
}
# What does nothing here, and is said to in one warning line.
ROWS_WITHOUT_EFFECT: Final = {name: ROWS[name] for name in sorted(ROWS.keys() - BROKER_ROWS.keys())}
# What an unconfigured broker (no --config) does otherwise than Kafka: one node, one machine.
# Ten at most; docs/guide.md gives the reasons.
ONE_NODE_PROFILE: Final = {
    name: row.profile for name, row in ROWS.items() if row.profile is not None
}
