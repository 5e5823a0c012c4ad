"""The problems of a cluster, with their causes, worst first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.base.text import counted, few_of
from wirebroker.client.cluster.quorum import DescribedQuorum, QuorumReplica
from wirebroker.client.cluster.voter_states import SILENT_STEP, missing_step
from wirebroker.codecs.primitives import ZERO_UUID, uuid_from_text
from wirebroker.console.model.snapshot import ClusterProblem, ProblemLevel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from wirebroker.console.model.cluster_state import ClusterState
    from wirebroker.console.model.group_info import GroupInfo
    from wirebroker.console.model.snapshot import ClusterSnapshot, QuorumInfo

_ERROR, _WARNING, _UNKNOWN = ProblemLevel.ERROR, ProblemLevel.WARNING, ProblemLevel.UNKNOWN
_ORDER: Final = {_ERROR: 0, _WARNING: 1, _UNKNOWN: 2}
# Names of a problem, of which its sentence has some.
_MOST_NAMES: Final = 20
_FEW: Final = 3
# Free share of a disk.
_LEAST_FREE: Final = 0.1
# A voter that is behind, or has not fetched, for longer.
_VOTER_MS: Final = 10_000
# Lag grows if it grows by this many records a second, and the oldest record waits this long.
_GROWTH: Final = 1.0
_OLD_S: Final = 60.0
# More groups with the same problem are one problem together.
_MOST_GROUPS: Final = 10


def problems_of(
    snapshot: ClusterSnapshot, state: ClusterState, now_ms: int
) -> list[ClusterProblem]:
    """Return the problems that the state shows."""
    problems = [
        *_brokers(snapshot, state),
        *_partitions(snapshot, state),
        *_disks(snapshot),
        *_quorum(snapshot),
        *_transactions(state, now_ms),
        *_groups(snapshot),
        *_refusals(state),
    ]
    return sorted(problems, key=lambda problem: _ORDER[problem.level])


def _brokers(snapshot: ClusterSnapshot, state: ClusterState) -> Iterator[ClusterProblem]:
    for broker_id, (_, why) in sorted(state.unreachable.items()):
        yield ClusterProblem(
            _ERROR,
            "broker",
            why,
            "start the broker, or set its advertised.listeners to an address that the console"
            " reaches",
            (str(broker_id),),
        )
    fenced = [str(row.broker_id) for row in snapshot.brokers.values() if row.is_fenced]
    yield from _problem(
        fenced,
        _ERROR,
        "broker",
        "is fenced: the controller receives no heartbeats from it|are fenced: the controller"
        " receives no heartbeats from them",
        "start it, or read its log; until then its partitions are led by other replicas",
    )
    missing = {
        replica
        for layout in state.layouts.values()
        for partition in layout.partitions
        for replica in partition.replicas
    } - snapshot.brokers.keys()
    yield from _problem(
        [str(broker_id) for broker_id in sorted(missing)],
        _ERROR,
        "broker",
        "holds replicas and is not running|hold replicas and are not running",
        "start it, or move its replicas to other brokers with `wirebroker reassign`",
    )


def _partitions(snapshot: ClusterSnapshot, state: ClusterState) -> Iterator[ClusterProblem]:
    yield from _of_topics(
        snapshot.leaderless_count,
        [topic.name for topic in snapshot.topics.values() if topic.leaderless_count],
        _ERROR,
        "has no leader and cannot be used|have no leader and cannot be used",
        "start the brokers that hold its in-sync replicas (the topic's page names them)",
    )
    refusing = {
        name: sum(0 < len(partition.isr) < least for partition in state.layouts[name].partitions)
        for name, least in state.min_isr.items()
        if name in state.layouts
    }
    yield from _of_topics(
        sum(refusing.values()),
        [name for name, count in refusing.items() if count],
        _ERROR,
        "has fewer in-sync replicas than min.insync.replicas, so acks=all is refused|have fewer"
        " in-sync replicas than min.insync.replicas, so acks=all is refused",
        "start the brokers that are missing in the ISR, or read their logs",
    )
    yield from _of_topics(
        snapshot.under_replicated_count,
        [topic.name for topic in snapshot.topics.values() if topic.under_replicated_count],
        _WARNING,
        "is under-replicated|are under-replicated",
        "start the brokers that are missing in the ISR, or read their logs",
    )


def _of_topics(
    count: int,
    topics: list[str],
    level: ProblemLevel,
    verb: str,
    next_step: str,
) -> Iterator[ClusterProblem]:
    if count:
        what = f"{counted(count, 'partition')} {_form(verb, count)}, in {few_of(topics, _FEW)}"
        yield ClusterProblem(level, "partition", what, next_step, tuple(topics[:_MOST_NAMES]))


def _disks(snapshot: ClusterSnapshot) -> Iterator[ClusterProblem]:
    for broker in snapshot.brokers.values():
        for directory in broker.log_dirs:
            place = f"log directory {directory.path} of broker {broker.broker_id}"
            names = (str(broker.broker_id),)
            total, usable = directory.total_bytes, directory.usable_bytes
            if directory.error is not None:
                what = f"{place} is offline: {directory.error}"
                step = "find the disk's error in the broker's log, fix it and restart the broker"
                yield ClusterProblem(_ERROR, "disk", what, step, names)
            elif total and usable is not None and usable < _LEAST_FREE * total:
                what = f"{place} has {100 * usable / total:.0f} % free space left"
                step = "lower the retention of large topics, or add room"
                yield ClusterProblem(_ERROR, "disk", what, step, names)


def _quorum(snapshot: ClusterSnapshot) -> Iterator[ClusterProblem]:
    quorum = snapshot.quorum
    if quorum is None:
        return
    if quorum.failure is not None:
        yield ClusterProblem(
            _ERROR,
            "quorum",
            f"the controllers do not respond: {quorum.failure}",
            SILENT_STEP,
        )
        return
    now_ms = max((node.caught_up_ms or 0 for node in quorum.nodes), default=0)
    described = _described(quorum, now_ms)
    for node, voter in zip(quorum.nodes, described.replicas, strict=True):
        if not node.is_voter or node.node_id == quorum.leader_id:
            continue
        name = (str(node.node_id),)
        if node.fetched_ms is None or now_ms - node.fetched_ms > _VOTER_MS:
            what = f"voter {node.node_id} does not fetch the metadata log"
            step = missing_step(described, voter)
            yield ClusterProblem(_WARNING, "quorum", what, step, name)
        elif node.lag and node.lag_ms is not None and node.lag_ms > _VOTER_MS:
            what = f"voter {node.node_id} is {node.lag_ms / 1000:.0f} s behind the metadata log"
            yield ClusterProblem(_WARNING, "quorum", what, "read that controller's log", name)


def _described(quorum: QuorumInfo, now_ms: int) -> DescribedQuorum:
    """Return the quorum as the client describes it."""
    replicas = [
        QuorumReplica(
            node.node_id,
            node.is_voter,
            node.end_offset,
            node.lag,
            node.lag_ms,
            uuid_from_text(node.directory_id) if node.directory_id else ZERO_UUID,
            node.fetched_ms,
            node.caught_up_ms,
        )
        for node in quorum.nodes
    ]
    return DescribedQuorum(
        quorum.leader_id,
        quorum.leader_epoch,
        quorum.high_watermark,
        replicas,
        now_ms,
        {node.node_id: list(node.endpoints) for node in quorum.nodes},
    )


def _transactions(state: ClusterState, now_ms: int) -> Iterator[ClusterProblem]:
    for transaction in state.transactions[:_MOST_GROUPS]:
        open_s = (transaction.open_ms(now_ms) or 0) / 1000
        yield ClusterProblem(
            _ERROR,
            "transaction",
            f"transaction {transaction.transactional_id} has been open for {open_s:.0f} s, longer"
            f" than its timeout of {transaction.timeout_ms / 1000:g} s",
            "read_committed consumers wait for it: stop its producer, and abort it with"
            f" `wirebroker transaction abort {transaction.transactional_id}`",
            (transaction.transactional_id,),
        )


def _groups(snapshot: ClusterSnapshot) -> Iterator[ClusterProblem]:
    stuck = [group for group in snapshot.groups.values() if group.stuck is not None]
    yield from _each_group(
        stuck,
        lambda group: f"group {group.name} is stuck: {group.stuck}",
        "are stuck",
        lambda group: group.next_step or "",
    )
    growing = [group for group in snapshot.groups.values() if _is_growing(group)]
    yield from _each_group(
        growing,
        lambda group: (
            f"the lag of group {group.name} grows by {group.trend or 0:.0f} records a second"
        ),
        "have a growing lag",
        lambda _: "add members (at most one for each partition), or make them faster",
    )


def _is_growing(group: GroupInfo) -> bool:
    is_old = group.lag_s is not None and group.lag_s >= _OLD_S
    return group.stuck is None and is_old and (group.trend or 0.0) >= _GROWTH


def _each_group(
    groups: list[GroupInfo],
    sentence: Callable[[GroupInfo], str],
    together: str,
    next_step: Callable[[GroupInfo], str],
) -> Iterator[ClusterProblem]:
    if len(groups) > _MOST_GROUPS:
        names = [group.name for group in groups]
        what = f"{len(groups)} groups {together}: {few_of(names, _FEW)}"
        step = "see each group's page for its cause"
        yield ClusterProblem(_WARNING, "group", what, step, tuple(names[:_MOST_NAMES]))
        return
    for group in groups:
        yield ClusterProblem(_WARNING, "group", sentence(group), next_step(group), (group.name,))


def _refusals(state: ClusterState) -> Iterator[ClusterProblem]:
    for poll, why in sorted(state.refusals.items()):
        yield ClusterProblem(
            _UNKNOWN,
            "permission",
            f"{poll} cannot be read: {why}",
            "allow this console's user to describe the cluster, its topics and groups",
        )


def _problem(
    names: list[str], level: ProblemLevel, kind: str, verb: str, next_step: str
) -> Iterator[ClusterProblem]:
    if names:
        noun = kind if len(names) == 1 else f"{kind}s"
        what = f"{noun} {few_of(names, _FEW)} {_form(verb, len(names))}"
        yield ClusterProblem(level, kind, what, next_step, tuple(names[:_MOST_NAMES]))


def _form(verb: str, count: int) -> str:
    """Return the singular or plural of `singular|plural`."""
    singular, _, plural = verb.partition("|")
    return singular if count == 1 else plural
