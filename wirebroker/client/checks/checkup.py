"""Checks of a cluster's health, each with the next step for every symptom.

A check is reported as open, not as trouble, if the cluster does not respond or if this user may not
see everything.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.base.clock import pause
from wirebroker.base.threads import Work, in_thread
from wirebroker.base.wording import counted
from wirebroker.client.checks.sight import sight_of
from wirebroker.client.checks.slow_requests import read_metrics, slow_requests
from wirebroker.client.cluster.quorum import is_silence, quorum_soon
from wirebroker.client.configs.configs import BROKER, TOPIC, configs_of
from wirebroker.client.errors import ClientError, check
from wirebroker.client.groups.groups import describe_group, list_groups, progress_of
from wirebroker.client.replicas.reassignments import list_reassignments
from wirebroker.client.transactions.transactions import describe_transaction, list_transactions
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeAlias

    from wirebroker.client.checks.sight import Sight
    from wirebroker.client.kafka_client import KafkaClient

    Question: TypeAlias = Callable[[KafkaClient, "CheckupLimits"], Awaitable["list[Symptom]"]]

_REBALANCING: Final = frozenset({"PreparingRebalance", "CompletingRebalance"})
_CONSUMERS: Final = frozenset({None, "classic", "consumer"})
_LOOPBACK: Final = ("127.", "localhost", "::1", "0.0.0.0", "::")  # noqa: S104 - what others say
_MIN_ISR: Final = "min.insync.replicas"
_THROTTLES: Final = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
_GIB: Final = 1 << 30
_ASK_OTHERWISE: Final = "ask as a user who may, or a newer broker"
_PARTITIONS: Final = "partitions"
_REQUESTS: Final = "requests"
# Checks whose responses silently omit what the user may not describe.
_OF_THOSE_SEEN: Final = {
    _PARTITIONS: "partitions",
    "groups": "groups",
    "transactions": "transactions",
}
# Names in a symptom.
_FEW: Final = 3


class Weight(Enum):
    """The severity of a symptom."""

    TROUBLE = "trouble"
    WARNING = "warning"
    OPEN = "open"


class Symptom(NamedTuple):
    """A problem of the cluster.

    Attributes:
        weight: Its severity.
        what: What was observed.
        next_step: How to fix it.
    """

    weight: Weight
    what: str
    next_step: str


class CheckupLimits(NamedTuple):
    """Thresholds for symptoms.

    Attributes:
        lag: Records that a group is behind.
        free_share: Free share of a disk, 0 to 1.
        skew_ms: Difference of clocks.
        patience_s: Duration of a rebalance.
        is_local: Whether the bootstrap address is of this machine.
        metrics_urls: Brokers' metrics pages, for request times; empty to skip that check.
        slow_ms: Time that 99 of 100 requests of an API may take.
    """

    lag: int
    free_share: float
    skew_ms: int
    patience_s: float
    is_local: bool
    metrics_urls: tuple[str, ...] = ()
    slow_ms: float = 1000.0


async def ask_all(client: KafkaClient, limits: CheckupLimits) -> dict[str, list[Symptom]]:
    """Run all checks one after the other; return the symptoms by check."""
    sight = await sight_of(client)
    found: dict[str, list[Symptom]] = {}
    for name, question in QUESTIONS.items():
        if name == _REQUESTS and not limits.metrics_urls:
            continue
        try:
            found[name] = [*await question(client, limits), *_unseen(name, sight)]
        except ClientError as error:
            found[name] = [Symptom(Weight.OPEN, str(error), _next_step(error))]
    return found


def _next_step(error: ClientError) -> str:
    if is_silence(error):
        return "see whether all brokers and controllers run, and their logs"
    return _ASK_OTHERWISE


def _unseen(question: str, sight: Sight) -> list[Symptom]:
    """Return a symptom for what this user may not see."""
    what = _OF_THOSE_SEEN.get(question)
    if what is None:
        return []
    if not sight.is_whole:
        only = f"only those {what} were looked at that this user may see: it may not describe"
        return [Symptom(Weight.OPEN, f"{only} the cluster", _ASK_OTHERWISE)]
    if question == _PARTITIONS:
        hidden = "are hidden from this user, and were not looked at"
        return _symptom(
            list(sight.hidden_topics), Weight.OPEN, hidden, _ASK_OTHERWISE, noun="topics"
        )
    return []


async def _addresses(client: KafkaClient, limits: CheckupLimits) -> list[Symptom]:
    """Check that each broker responds at its advertised address."""
    found: list[Symptom] = []
    for each in (await client.metadata()).brokers:
        try:
            await client.request_of(each.node_id, ApiKey.METADATA, _no_topics)
        except ClientError as error:
            step = "set its advertised.listeners to an address that clients reach, or start it"
            found.append(Symptom(Weight.TROUBLE, str(error), step))
            continue
        if each.host.startswith(_LOOPBACK) and not limits.is_local:
            what = f"broker {each.node_id} tells clients to connect to {each.host}"
            step = "set its advertised.listeners to an address that other machines reach"
            found.append(Symptom(Weight.TROUBLE, what, step))
    return found


async def _partitions(client: KafkaClient, limits: CheckupLimits) -> list[Symptom]:
    """Find partitions without a leader or with out-of-sync replicas."""
    del limits
    answer = await client.metadata()
    running = {each.node_id for each in answer.brokers}
    leaderless: list[str] = []
    behind: list[str] = []
    blocked: list[str] = []
    gone: set[int] = set()
    for topic in answer.topics:
        short = [each for each in topic.partitions if len(each.isr_nodes) < len(each.replica_nodes)]
        least = await _least_isr(client, topic.name) if short else 0
        for each in topic.partitions:
            name = f"{topic.name}-{each.partition_index}"
            gone |= set(each.replica_nodes) - running
            if each.leader_id < 0:
                leaderless.append(name)
            elif len(each.isr_nodes) < least:
                blocked.append(name)
            elif len(each.isr_nodes) < len(each.replica_nodes):
                behind.append(name)
    return [
        *_symptom(leaderless, Weight.TROUBLE, "have no leader", "start the brokers that hold them"),
        *_symptom(
            blocked,
            Weight.TROUBLE,
            "have fewer replicas in sync than min.insync.replicas: acks=all is refused",
            "start the brokers that are missing, or look why they lag",
        ),
        *_symptom(
            behind,
            Weight.WARNING,
            "are under-replicated",
            "see `topic describe` for who is missing in ISR, then that broker's log",
        ),
        *_symptom(
            [str(each) for each in sorted(gone)],
            Weight.TROUBLE,
            "hold replicas and are not running",
            "start them, or move their replicas by `reassign`",
            noun="brokers",
        ),
    ]


async def _groups(client: KafkaClient, limits: CheckupLimits) -> list[Symptom]:
    """Find groups that hang in a rebalance or are behind."""
    found: list[Symptom] = []
    names = [each.name for each in await list_groups(client) if each.kind in _CONSUMERS]
    unsettled: list[str] = []
    for name in names:
        described = await describe_group(client, name)
        if described.state in _REBALANCING:
            unsettled.append(name)
            continue
        lag = sum(each.lag or 0 for each in await progress_of(client, name))
        if lag < limits.lag:
            continue
        if described.members:
            step = "see `group describe` for the partitions; add members, or make them faster"
        else:
            step = "it has no members: start its consumers, or delete it if nobody needs it"
        found.append(
            Symptom(Weight.WARNING, f"group {name} is {counted(lag, 'record')} behind", step)
        )
    if unsettled:
        await pause(limits.patience_s)
    for name in unsettled:
        state = (await describe_group(client, name)).state
        if state in _REBALANCING:
            what = f"group {name} is in {state} for more than {limits.patience_s:g} s"
            step = "a member does not join or sync: see `group describe`, then that member's log"
            found.append(Symptom(Weight.TROUBLE, what, step))
    return found


async def _disks(client: KafkaClient, limits: CheckupLimits) -> list[Symptom]:
    """Check each broker's log directories."""
    found: list[Symptom] = []
    for broker in await client.broker_ids():
        answer = await client.request_of(broker, ApiKey.DESCRIBE_LOG_DIRS, {"topics": None})
        check(getattr(answer, "error_code", 0), f"broker {broker} does not show its directories")
        for each in answer.results:
            where = f"broker {broker}, {each.log_dir}"
            if each.error_code:
                step = "see its log for the fault of the disk; mend it and start the broker again"
                found.append(Symptom(Weight.TROUBLE, f"{where} is offline", step))
                continue
            total, free = getattr(each, "total_bytes", -1), getattr(each, "usable_bytes", -1)
            if total > 0 and 0 <= free < limits.free_share * total:
                what = f"{where} has {free / _GIB:.1f} GiB left of {total / _GIB:.1f}"
                step = "shorten retention (`topic alter -c retention.ms=…`), or add room"
                found.append(Symptom(Weight.TROUBLE, what, step))
    return found


async def _quorum(client: KafkaClient, limits: CheckupLimits) -> list[Symptom]:
    """Check the controllers, and the leader's clock."""
    found: list[Symptom] = []
    try:
        quorum = await quorum_soon(client)
    except ClientError as error:
        if not is_silence(error):
            raise
        what = f"no controller responds: {error.told or error}"
        step = (
            "start a controller: until then nothing can be created or altered, and no partition"
            " fails over"
        )
        return [Symptom(Weight.TROUBLE, what, step)]
    if quorum.leader_id < 0:
        step = "start a majority of the controllers"
        return [Symptom(Weight.TROUBLE, "the quorum has no leader", step)]
    for each in quorum.replicas:
        if each.lag_ms is not None and each.lag_ms > limits.skew_ms and each.lag:
            what = f"node {each.node_id} is {each.lag_ms / 1000:.0f} s behind the metadata"
            found.append(Symptom(Weight.WARNING, what, "see whether it runs, and its log"))
    if quorum.now_ms is not None:
        skew_ms = quorum.now_ms - client.clock.now_ms()
        if abs(skew_ms) > limits.skew_ms:
            what = (
                f"the clock of controller {quorum.leader_id} is {skew_ms / 1000:+.1f} s from ours"
            )
            step = "let both keep time (NTP): retention and time-outs go by it"
            found.append(Symptom(Weight.WARNING, what, step))
    return found


async def _transactions(client: KafkaClient, limits: CheckupLimits) -> list[Symptom]:
    """Find transactions that stay open."""
    found: list[Symptom] = []
    for each in await list_transactions(client, states=["Ongoing"]):
        described = await describe_transaction(client, each.transactional_id)
        if described.started_ms is None:
            continue
        open_ms = client.clock.now_ms() - described.started_ms
        if open_ms > described.timeout_ms + limits.skew_ms:
            what = f"transaction {each.transactional_id} is open for {open_ms / 1000:.0f} s"
            step = "consumers of committed records wait for it: see `transaction describe`"
            found.append(Symptom(Weight.TROUBLE, what, step))
    return found


async def _moves(client: KafkaClient, limits: CheckupLimits) -> list[Symptom]:
    """Find throttles that are no longer needed."""
    del limits
    if await list_reassignments(client):
        return []
    left = [
        str(broker)
        for broker in await client.broker_ids()
        for each in await configs_of(client, BROKER, str(broker), names=_THROTTLES)
        if each.name == _THROTTLES[0] and each.is_set
    ]
    what = "have replication throttled though nothing is moved"
    step = f"take it away: `config unset broker ID {' '.join(_THROTTLES)}`"
    return _symptom(left, Weight.WARNING, what, step, noun="brokers")


async def _requests(client: KafkaClient, limits: CheckupLimits) -> list[Symptom]:
    """Find APIs with slow requests."""
    del client
    found: list[Symptom] = []
    for url in limits.metrics_urls:
        try:
            page = await in_thread(Work.LOOKUPS, read_metrics, url)
        except (OSError, ValueError) as error:
            step = "give the address of a broker's /metrics (wirebroker.http.listeners)"
            found.append(Symptom(Weight.OPEN, f"cannot read {url}: {error}", step))
            continue
        for slow in slow_requests(page, limits.slow_ms):
            what = (
                f"1 of 100 recent {slow.name} requests at {url} took over {slow.ms:,.0f} ms, "
                f"most of it {slow.where}"
            )
            found.append(Symptom(Weight.WARNING, what, slow.next_step))
    return found


QUESTIONS: Final[dict[str, Question]] = {
    "addresses": _addresses,
    _PARTITIONS: _partitions,
    "groups": _groups,
    "disks": _disks,
    "quorum and clock": _quorum,
    "transactions": _transactions,
    "moves": _moves,
    _REQUESTS: _requests,
}


async def _least_isr(client: KafkaClient, topic: str) -> int:
    configs = await configs_of(client, TOPIC, topic, names=[_MIN_ISR])
    return next((int(each.value or 1) for each in configs if each.name == _MIN_ISR), 1)


def _symptom(
    names: list[str], weight: Weight, what: str, step: str, *, noun: str = "partitions"
) -> list[Symptom]:
    if not names:
        return []
    shown = ", ".join(names[:_FEW]) + (", …" if len(names) > _FEW else "")
    return [Symptom(weight, f"{len(names)} {noun} {what}: {shown}", step)]


def _no_topics(version: int) -> dict[str, Any]:
    return {"topics": [], "allow_auto_topic_creation": version < 4}
