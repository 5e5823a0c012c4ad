"""All kinds of changes, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.console.changes.kinds import (
    acls,
    configs,
    delivery,
    elections,
    groups,
    loggers,
    messages,
    placement,
    quotas,
    testing,
    topics,
    transactions,
    users,
)

if TYPE_CHECKING:
    from wirebroker.console.changes.change import ChangeKind

CHANGES: Final[dict[str, ChangeKind]] = {
    kind.name: kind
    for kinds in (
        acls.KINDS,
        configs.KINDS,
        delivery.KINDS,
        elections.KINDS,
        groups.KINDS,
        loggers.KINDS,
        messages.KINDS,
        placement.KINDS,
        quotas.KINDS,
        testing.KINDS,
        topics.KINDS,
        transactions.KINDS,
        users.KINDS,
    )
    for kind in kinds
}
