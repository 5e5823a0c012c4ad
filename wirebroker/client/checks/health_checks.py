"""Checks of a cluster's health.

A check is open, not failed, if the cluster does not respond or this user may not see everything.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.base.clock import pause
from wirebroker.base.text import counted
from wirebroker.base.threads import Work, in_thread
from wirebroker.client.checks.slow_requests import read_metrics, slow_requests
from wirebroker.client.checks.visibility import visibility_of
from wirebroker.client.cluster.quorum import is_silence, quorum_with_short_timeout
from wirebroker.client.cluster.voter_states import (
    SILENT_STEP,
    missing_step,
    missing_text,
    voters_of,
)
from wirebroker.client.configs.configs import BROKER, TOPIC, configs_of
from wirebroker.client.errors import ClientError, check
from wirebroker.client.groups.groups import describe_group, list_groups, progress_of
from wirebroker.client.replicas.reassignments import list_reassignments
from wirebroker.client.transactions.transactions import (
    ONGOING,
    describe_transaction,
    list_transactions,
)
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from typing import TypeAlias

    from wirebroker.client.checks.visibility import Visibility
    from wirebroker.client.cluster.quorum import DescribedQuorum
    from wirebroker.client.kafka_client import KafkaClient

    Question: TypeAlias = Callable[[KafkaClient, "HealthLimits"], Awaitable["list[Symptom]"]]

_REBALANCING: Final = frozenset({"PreparingRebalance", "CompletingRebalance"})
_CONSUMERS: Final = frozenset({None, "classic", "consumer"})
_LOOPBACK: Final = ("127.", "localhost", "::1", "0.0.0.0", "::")  # noqa: S104 - what others say
_MIN_ISR: Final = "min.insync.replicas"
_THROTTLES: Final = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
_GIB: Final = 1 << 30
_USE_ANOTHER_LOGIN: Final = "run the check as a user with the permission, or against a newer broker"
_PARTITIONS: Final = "partitions"
_REQUESTS: Final = "requests"
_QUORUM: Final = "quorum and clock"
_MOVES: Final = "moves"
# Checks whose responses omit what the user may not describe.
_FILTERED_NOUNS: Final = {
    _PARTITIONS: "partitions",
    "groups": "groups",
    "transactions": "transactions",
}
# Names in a symptom.
_FEW: Final = 3


class Weight(Enum):
    """Severity of a symptom."""

    TROUBLE = "trouble"
    WARNING = "warning"
    OPEN = "open"


class Symptom(NamedTuple):
    """An observed problem of the cluster, and how to fix it."""

    weight: Weight
    what: str
    next_step: str


class HealthLimits(NamedTuple):
    """Thresholds for symptoms.

    Attributes:
        lag: Records that a group is behind.
        free_share: Free share of a disk, 0 to 1.
        patience_s: Duration of a rebalance.
        is_local: Whether the bootstrap address is of this machine.
        metrics_urls: Brokers' metrics pages; empty to skip their check.
        slow_ms: Time that 99 of 100 requests of an API may take.
    """

    lag: int
    free_share: float
    skew_ms: int
    patience_s: float
    is_local: bool
    metrics_urls: tuple[str, ...] = ()
    slow_ms: float = 1000.0


async def run_checks(client: KafkaClient, limits: HealthLimits) -> dict[str, list[Symptom]]:
    """Run all checks in turn; return the symptoms by check."""
    visibility = await visibility_of(client)
    symptoms: dict[str, list[Symptom]] = {}
    for name, question in QUESTIONS.items():
        if name == _REQUESTS and not limits.metrics_urls:
            continue
        # Only a controller responds to this one, and the check of the quorum was made before.
        if name == _MOVES and _is_leaderless(symptoms[_QUORUM]):
            symptoms[name] = [
                Symptom(Weight.OPEN, "not checked: no controller responds", SILENT_STEP)
            ]
            continue
        try:
            symptoms[name] = [*await question(client, limits), *_unseen(name, visibility)]
        except ClientError as error:
            symptoms[name] = [Symptom(Weight.OPEN, str(error), _next_step(error))]
    return symptoms


def _is_leaderless(symptoms: Sequence[Symptom]) -> bool:
    """Return whether the check of the quorum found no active controller."""
    return any(symptom.next_step == SILENT_STEP for symptom in symptoms)


def _next_step(error: ClientError) -> str:
    if is_silence(error):
        return "check that all brokers and controllers run, and read their logs"
    return _USE_ANOTHER_LOGIN


def _unseen(question: str, visibility: Visibility) -> list[Symptom]:
    noun = _FILTERED_NOUNS.get(question)
    if noun is None:
        return []
    if not visibility.is_whole:
        only = f"only the {noun} that this user may see were checked: this user may not describe"
        return [Symptom(Weight.OPEN, f"{only} the cluster", _USE_ANOTHER_LOGIN)]
    if question == _PARTITIONS:
        hidden = "are hidden from this user and were not checked"
        return _symptom(
            list(visibility.hidden_topics), Weight.OPEN, hidden, _USE_ANOTHER_LOGIN, noun="topics"
        )
    return []


async def _addresses(client: KafkaClient, limits: HealthLimits) -> list[Symptom]:
    """Check that brokers respond at their advertised addresses."""
    symptoms: list[Symptom] = []
    for broker in (await client.metadata()).brokers:
        try:
            await client.request_of(broker.node_id, ApiKey.METADATA, _no_topics)
        except ClientError as error:
            step = "set its advertised.listeners to an address that clients reach, or start it"
            symptoms.append(Symptom(Weight.TROUBLE, str(error), step))
            continue
        if broker.host.startswith(_LOOPBACK) and not limits.is_local:
            problem = f"broker {broker.node_id} advertises {broker.host}"
            step = "set its advertised.listeners to an address that other machines reach"
            symptoms.append(Symptom(Weight.TROUBLE, problem, step))
    return symptoms


async def _partitions(client: KafkaClient, limits: HealthLimits) -> list[Symptom]:
    """Find partitions without a leader or with out-of-sync replicas."""
    del limits
    answer = await client.metadata()
    running = {broker.node_id for broker in answer.brokers}
    leaderless: list[str] = []
    under_replicated: list[str] = []
    blocked: list[str] = []
    stopped_brokers: set[int] = set()
    for topic in answer.topics:
        out_of_sync = [
            partition
            for partition in topic.partitions
            if len(partition.isr_nodes) < len(partition.replica_nodes)
        ]
        min_isr = await _least_isr(client, topic.name) if out_of_sync else 0
        for partition in topic.partitions:
            name = f"{topic.name}-{partition.partition_index}"
            stopped_brokers |= set(partition.replica_nodes) - running
            if partition.leader_id < 0:
                leaderless.append(name)
            elif len(partition.isr_nodes) < min_isr:
                blocked.append(name)
            elif len(partition.isr_nodes) < len(partition.replica_nodes):
                under_replicated.append(name)
    return [
        *_symptom(leaderless, Weight.TROUBLE, "have no leader", "start the brokers that hold them"),
        *_symptom(
            blocked,
            Weight.TROUBLE,
            "have fewer replicas in sync than min.insync.replicas: acks=all is refused",
            "start the missing brokers, or find out why they lag",
        ),
        *_symptom(
            under_replicated,
            Weight.WARNING,
            "are under-replicated",
            "see `topic describe` for the brokers missing from the ISR, then their logs",
        ),
        *_symptom(
            [str(broker_id) for broker_id in sorted(stopped_brokers)],
            Weight.TROUBLE,
            "hold replicas and are not running",
            "start them, or move their replicas with `reassign`",
            noun="brokers",
        ),
    ]


async def _groups(client: KafkaClient, limits: HealthLimits) -> list[Symptom]:
    """Find groups that hang in a rebalance or are behind."""
    symptoms: list[Symptom] = []
    names = [group.name for group in await list_groups(client) if group.kind in _CONSUMERS]
    unsettled: list[str] = []
    for name in names:
        described = await describe_group(client, name)
        if described.state in _REBALANCING:
            unsettled.append(name)
            continue
        lag = sum(progress.lag or 0 for progress in await progress_of(client, name))
        if lag < limits.lag:
            continue
        if described.members:
            step = "see `group describe` for the partitions; add members, or make them faster"
        else:
            step = "it has no members: start its consumers, or delete it if it is no longer needed"
        symptoms.append(
            Symptom(Weight.WARNING, f"group {name} is {counted(lag, 'record')} behind", step)
        )
    if unsettled:
        await pause(limits.patience_s)
    for name in unsettled:
        state = (await describe_group(client, name)).state
        if state in _REBALANCING:
            problem = f"group {name} has been in {state} for more than {limits.patience_s:g} s"
            step = "a member does not join or sync: see `group describe`, then that member's log"
            symptoms.append(Symptom(Weight.TROUBLE, problem, step))
    return symptoms


async def _disks(client: KafkaClient, limits: HealthLimits) -> list[Symptom]:
    symptoms: list[Symptom] = []
    for broker in await client.broker_ids():
        answer = await client.request_of(broker, ApiKey.DESCRIBE_LOG_DIRS, {"topics": None})
        check(
            getattr(answer, "error_code", 0),
            f"the log directories of broker {broker} cannot be described",
        )
        for directory in answer.results:
            location = f"broker {broker}, {directory.log_dir}"
            if directory.error_code:
                step = "see its log for the disk error; fix the disk and restart the broker"
                symptoms.append(Symptom(Weight.TROUBLE, f"{location} is offline", step))
                continue
            total, free = (
                getattr(directory, "total_bytes", -1),
                getattr(directory, "usable_bytes", -1),
            )
            if total > 0 and 0 <= free < limits.free_share * total:
                problem = f"{location} has {free / _GIB:.1f} GiB left of {total / _GIB:.1f}"
                step = "shorten retention (`topic alter -c retention.ms=…`), or add room"
                symptoms.append(Symptom(Weight.TROUBLE, problem, step))
    return symptoms


async def _quorum(client: KafkaClient, limits: HealthLimits) -> list[Symptom]:
    """Check the controllers, and the leader's clock."""
    symptoms: list[Symptom] = []
    try:
        quorum = await quorum_with_short_timeout(client)
    except ClientError as error:
        if not is_silence(error):
            raise
        problem = f"no controller responds: {error.told or error}"
        return [Symptom(Weight.TROUBLE, problem, SILENT_STEP)]
    if quorum.leader_id < 0:
        return [Symptom(Weight.TROUBLE, "the quorum has no leader", SILENT_STEP)]
    symptoms += _missing_voters(quorum)
    missing_ids = voters_of(quorum).missing_ids
    for replica in quorum.replicas:
        if replica.is_voter and replica.node_id in missing_ids:
            continue
        if replica.lag_ms is not None and replica.lag_ms > limits.skew_ms and replica.lag:
            problem = f"node {replica.node_id} is {replica.lag_ms / 1000:.0f} s behind the metadata"
            symptoms.append(Symptom(Weight.WARNING, problem, "check that it runs; read its log"))
    if quorum.now_ms is not None:
        skew_ms = quorum.now_ms - client.clock.now_ms()
        if abs(skew_ms) > limits.skew_ms:
            problem = (
                f"the clock of controller {quorum.leader_id} differs from the local one by"
                f" {skew_ms / 1000:+.1f} s"
            )
            step = "synchronize both (NTP): retention and timeouts depend on the time"
            symptoms.append(Symptom(Weight.WARNING, problem, step))
    return symptoms


def _missing_voters(quorum: DescribedQuorum) -> list[Symptom]:
    """Report missing voters: trouble if the next failure would stop the controllers."""
    voters = voters_of(quorum)
    weight = Weight.WARNING if voters.spare > 0 else Weight.TROUBLE
    return [
        Symptom(weight, missing_text(quorum, voter), missing_step(quorum, voter))
        for voter in voters.missing
    ]


async def _transactions(client: KafkaClient, limits: HealthLimits) -> list[Symptom]:
    symptoms: list[Symptom] = []
    for transaction in await list_transactions(client, states=[ONGOING]):
        described = await describe_transaction(client, transaction.transactional_id)
        open_ms = described.open_ms(client.clock.now_ms())
        if open_ms is not None and open_ms > described.timeout_ms + limits.skew_ms:
            problem = (
                f"transaction {transaction.transactional_id} has been open for"
                f" {open_ms / 1000:.0f} s"
            )
            step = "read_committed consumers wait for it: see `transaction describe`"
            symptoms.append(Symptom(Weight.TROUBLE, problem, step))
    return symptoms


async def _moves(client: KafkaClient, limits: HealthLimits) -> list[Symptom]:
    """Find unneeded throttles."""
    del limits
    if await list_reassignments(client):
        return []
    throttled = [
        str(broker)
        for broker in await client.broker_ids()
        for config in await configs_of(client, BROKER, str(broker), names=_THROTTLES)
        if config.name == _THROTTLES[0] and config.is_set
    ]
    problem = "have a replication throttle, but no replicas are moving"
    step = f"remove it: `config unset broker ID {' '.join(_THROTTLES)}`"
    return _symptom(throttled, Weight.WARNING, problem, step, noun="brokers")


async def _requests(client: KafkaClient, limits: HealthLimits) -> list[Symptom]:
    del client
    symptoms: list[Symptom] = []
    for url in limits.metrics_urls:
        try:
            page = await in_thread(Work.LOOKUPS, read_metrics, url)
        except (OSError, ValueError) as error:
            step = "give the address of a broker's /metrics (wirebroker.http.listeners)"
            symptoms.append(Symptom(Weight.OPEN, f"cannot read {url}: {error}", step))
            continue
        for slow in slow_requests(page, limits.slow_ms):
            problem = (
                f"1 of 100 recent {slow.name} requests at {url} took over {slow.ms:,.0f} ms, "
                f"most of it {slow.where}"
            )
            symptoms.append(Symptom(Weight.WARNING, problem, slow.next_step))
    return symptoms


QUESTIONS: Final[dict[str, Question]] = {
    "addresses": _addresses,
    _PARTITIONS: _partitions,
    "groups": _groups,
    "disks": _disks,
    _QUORUM: _quorum,
    "transactions": _transactions,
    _MOVES: _moves,
    _REQUESTS: _requests,
}


async def _least_isr(client: KafkaClient, topic: str) -> int:
    configs = await configs_of(client, TOPIC, topic, names=[_MIN_ISR])
    return next((int(config.value or 1) for config in configs if config.name == _MIN_ISR), 1)


def _symptom(
    names: list[str], weight: Weight, problem: str, step: str, *, noun: str = "partitions"
) -> list[Symptom]:
    if not names:
        return []
    examples = ", ".join(names[:_FEW]) + (", …" if len(names) > _FEW else "")
    return [Symptom(weight, f"{len(names)} {noun} {problem}: {examples}", step)]


def _no_topics(version: int) -> dict[str, Any]:
    return {"topics": [], "allow_auto_topic_creation": version < 4}
