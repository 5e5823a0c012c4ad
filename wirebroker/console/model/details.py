"""Details that pages read when they are shown; see `detail_cache`.

Each function raises ClientError, with a sentence, if the cluster does not respond or refuses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.base.threads import Work, in_thread
from wirebroker.client.configs import configs as client_configs
from wirebroker.client.configs.quotas import list_quotas
from wirebroker.client.errors import ClientError, did_you_mean
from wirebroker.client.replicas.moves import throttles_of
from wirebroker.client.replicas.reassignments import list_reassignments
from wirebroker.client.security.acls import RuleFilter, list_acls
from wirebroker.client.security.users import list_users
from wirebroker.client.topics.leaders import partitions_of
from wirebroker.client.transactions.hanging import hanging_producers
from wirebroker.client.transactions.producer_states import producers_of
from wirebroker.client.transactions.transactions import (
    ONGOING,
    describe_transactions,
    list_transactions,
)
from wirebroker.console.model.group_info import EndOffsets
from wirebroker.console.model.group_polls import refresh_group
from wirebroker.console.model.rights import missing_rights_of
from wirebroker.console.model.snapshot_builder import group_info
from wirebroker.console.model.transaction_polls import is_hanging

if TYPE_CHECKING:
    from wirebroker.client.configs.configs import ConfigEntry
    from wirebroker.client.configs.quotas import EntityQuotas
    from wirebroker.client.replicas.moves import Throttles
    from wirebroker.client.security.acls import AccessRule
    from wirebroker.client.security.users import ScramUser
    from wirebroker.client.transactions.producer_states import PartitionProducer
    from wirebroker.client.transactions.transactions import (
        DescribedTransaction,
        ListedTransaction,
    )
    from wirebroker.console.model.collector import Collector
    from wirebroker.console.model.group_info import GroupInfo

_KINDS: Final = {
    "topic": client_configs.TOPIC,
    "broker": client_configs.BROKER,
    "loggers": client_configs.BROKER_LOGGER,
    "group": client_configs.GROUP,
}
# Transactions that a page lists.
_MOST_TRANSACTIONS: Final = 1000
_CHUNK: Final = 50


class TransactionDetail(NamedTuple):
    """A transactional id; times are ms since 1970.

    Attributes:
        started_ms: None if no transaction is open.
        partitions: Such as `orders-0`.
        is_hanging: Whether its coordinator should have aborted it.
        why: Why it hangs, in a sentence.
    """

    transactional_id: str
    coordinator_id: int
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    started_ms: int | None
    partitions: tuple[str, ...]
    is_hanging: bool
    why: str | None


class ReassignmentDetail(NamedTuple):
    """A partition whose replicas are moving; `adding` and `removing` are parts of `replicas`."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


async def group(collector: Collector, name: str) -> GroupInfo:
    """Read the members and committed offsets of a group."""
    cluster = collector.cluster

    async def read() -> None:
        known = cluster.state.groups.get(name)
        if known is None:
            names = list(cluster.state.groups)
            hint = await in_thread(Work.LISTS, did_you_mean, name, names)
            raise ClientError(f"there is no group {name}{hint}")
        await refresh_group(cluster, known)

    await collector.details.get(("group", name), read)
    state = cluster.state
    known = state.groups.get(name)
    if known is None:
        raise ClientError(f"group {name} was deleted")
    ends = EndOffsets(
        state.history.slots, tuple(state.history.ends), collector.client.clock.now_ms()
    )
    return group_info(known, ends)


async def configs(collector: Collector, kind: str, name: str) -> list[ConfigEntry]:
    """Return all configs of a topic, broker or group, or the loggers of a broker."""

    async def read() -> list[ConfigEntry]:
        return await collector.cluster.timed(
            client_configs.configs_of(collector.client, _KINDS[kind], name, documentation=True)
        )

    return await collector.details.get(("configs", kind, name), read)


async def acls(collector: Collector) -> list[AccessRule]:
    """Return all ACLs."""

    async def read() -> list[AccessRule]:
        return await collector.cluster.timed(list_acls(collector.client, RuleFilter()))

    return await collector.details.get("acls", read)


async def users(collector: Collector) -> list[ScramUser]:
    """Return the users with SCRAM credentials."""

    async def read() -> list[ScramUser]:
        return await collector.cluster.timed(list_users(collector.client))

    return await collector.details.get("users", read)


async def quotas(collector: Collector) -> list[EntityQuotas]:
    """Return the quotas of all users, client ids and addresses."""

    async def read() -> list[EntityQuotas]:
        return await collector.cluster.timed(list_quotas(collector.client, {}))

    return await collector.details.get("quotas", read)


async def reassignments(collector: Collector) -> list[ReassignmentDetail]:
    """Return the reassignments in progress."""

    async def read() -> list[ReassignmentDetail]:
        return [
            ReassignmentDetail(
                *row.place, tuple(row.replicas), tuple(row.adding), tuple(row.removing)
            )
            for row in await collector.cluster.timed(list_reassignments(collector.client))
        ]

    return await collector.details.get("reassignments", read)


async def throttles(collector: Collector) -> Throttles:
    """Return the throttles of moves of all brokers."""

    async def read() -> Throttles:
        return await collector.cluster.timed(throttles_of(collector.client))

    return await collector.details.get("throttles", read)


async def hanging(collector: Collector, topic: str, longer_than_ms: int) -> list[PartitionProducer]:
    """Return the producers of a topic's transactions that no coordinator ends, at most 1,000."""

    async def read() -> list[PartitionProducer]:
        work = hanging_producers(collector.client, topic=topic, longer_than_ms=longer_than_ms)
        return (await collector.cluster.timed(work))[:_MOST_TRANSACTIONS]

    return await collector.details.get(("hanging", topic, longer_than_ms), read)


async def producers(collector: Collector, topic: str) -> list[PartitionProducer]:
    """Return the active producers of a topic."""

    async def read() -> list[PartitionProducer]:
        client = collector.client
        places = list(await partitions_of(client, [topic]))
        return await collector.cluster.timed(producers_of(client, places))

    return await collector.details.get(("producers", topic), read)


async def missing_rights(collector: Collector, *, is_read_only: bool) -> list[str]:
    """Return the rights on the cluster that the console's user lacks; see `rights.py`."""

    async def read() -> list[str]:
        missing = missing_rights_of(collector.client, is_read_only=is_read_only)
        return await collector.cluster.timed(missing)

    return await collector.details.get("rights", read)


async def transactions(collector: Collector) -> list[TransactionDetail]:
    """Return the transactional ids, at most 1,000; those with open transactions first."""

    async def read() -> list[TransactionDetail]:
        client = collector.client
        listed = await collector.cluster.timed(list_transactions(client))
        listed.sort(key=lambda row: row.state != ONGOING)
        by_coordinator: dict[int, list[ListedTransaction]] = {}
        for row in listed[:_MOST_TRANSACTIONS]:
            by_coordinator.setdefault(row.coordinator_id, []).append(row)
        described: list[DescribedTransaction] = []
        for broker_id, rows in by_coordinator.items():
            for first in range(0, len(rows), _CHUNK):
                ids = [row.transactional_id for row in rows[first : first + _CHUNK]]
                work = describe_transactions(client, broker_id, ids)
                described += await collector.cluster.timed(work, broker_id)
        now_ms = client.clock.now_ms()
        details = [_transaction(row, now_ms) for row in described]
        return sorted(details, key=lambda row: (row.started_ms is None, row.transactional_id))

    return await collector.details.get("transactions", read)


def _transaction(row: DescribedTransaction, now_ms: int) -> TransactionDetail:
    hangs = is_hanging(row, now_ms)
    open_s = (row.open_ms(now_ms) or 0) / 1000
    why = (
        f"it has been open for {open_s:.0f} s, longer than its timeout of"
        f" {row.timeout_ms / 1000:g} s: its coordinator should have aborted it"
    )
    return TransactionDetail(
        row.transactional_id,
        row.coordinator_id,
        row.state,
        row.producer_id,
        row.producer_epoch,
        row.timeout_ms,
        row.started_ms if row.is_open else None,
        tuple(row.partitions),
        hangs,
        why if hangs else None,
    )
