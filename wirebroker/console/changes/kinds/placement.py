"""Moves of replicas between brokers, and their throttle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.base.text import counted
from wirebroker.client.checks.dry_runs import check_moves
from wirebroker.client.replicas.moves import (
    ReplicaPlan,
    cancel_moves,
    replicas_of_partitions,
    spread_replicas,
    start_moves,
    throttle_moves,
    throttled_topics,
    throttles_of,
    unthrottle_moves,
)
from wirebroker.client.replicas.reassignment_plan import plan_text
from wirebroker.client.replicas.reassignments import list_reassignments, origins_of
from wirebroker.client.topics.leaders import TopicPartition
from wirebroker.console.changes.change import (
    ChangeError,
    ChangeKind,
    ConsoleRole,
    Field,
    FieldKind,
    PreparedChange,
)
from wirebroker.console.changes.command_line import piped, verb_line
from wirebroker.console.changes.field_values import number_of
from wirebroker.console.changes.numbers import broker_list, required_number
from wirebroker.console.view.formats import size, size_rate

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from wirebroker.client.replicas.moves import Throttles
    from wirebroker.client.replicas.reassignments import Reassignment
    from wirebroker.console.model.collector import Collector
    from wirebroker.console.model.snapshot import ClusterSnapshot

_MOST_PARTITION: Final = (1 << 31) - 1
_MOST_RATE: Final = (1 << 63) - 1
_MOST_REPLICAS: Final = 1000
_THROTTLE: Final = Field(
    "throttle",
    "Throttle",
    FieldKind.NUMBER,
    help="Bytes per second between two brokers; empty: no change.",
    is_required=False,
)


def _listed(brokers: Sequence[int]) -> str:
    return ", ".join(map(str, brokers))


def _copied_bytes(plan: ReplicaPlan, snapshot: ClusterSnapshot) -> int:
    """Return how much the moves copy, as far as sizes are known."""
    sizes: dict[str, list[int | None]] = {}
    total = 0
    for place, goal in plan.moves.items():
        topic = snapshot.topics.get(place.topic)
        if topic is not None and place.topic not in sizes:
            sizes[place.topic] = [row.size_bytes for row in topic.partitions]
        known = sizes.get(place.topic, [])
        added = [broker for broker in goal if broker not in plan.current[place]]
        if place.partition < len(known):
            total += (known[place.partition] or 0) * len(added)
    return total


def _warnings(plan: ReplicaPlan, snapshot: ClusterSnapshot) -> list[str]:
    warnings: list[str] = []
    for place, goal in plan.moves.items():
        count, before = len(goal), len(plan.current[place])
        if count != before:
            text = f"the replication factor changes from {before} to {count}"
            warnings.append(f"{text}: {place.topic}")
        warnings += [
            f"broker {broker} is not running: the move waits for it"
            for broker in goal
            if broker not in snapshot.brokers or snapshot.brokers[broker].is_fenced
        ]
    return list(dict.fromkeys(warnings))


async def _moves(
    collector: Collector, plan: ReplicaPlan, bytes_per_s: int | None, summary: str
) -> PreparedChange:
    """Return the plan that starts moves."""
    client, moves = collector.client, plan.moves
    await check_moves(client, moves)
    running = {row.place for row in await list_reassignments(client)}
    warnings = _warnings(plan, collector.snapshot)
    warnings += [f"replaces the running move of {place}" for place in moves if place in running]
    lines = [
        f"{place}: brokers {_listed(plan.current[place])} → {_listed(goal)}"
        for place, goal in moves.items()
    ]
    flags = ["--yes"]
    if bytes_per_s is not None:
        flags += ["--throttle", str(bytes_per_s)]
        lines.append(f"throttle: {size_rate(bytes_per_s)} between two brokers")
        warnings.append("the throttle remains until it is removed, also after the move")
        if running - moves.keys():
            warnings.append("the moves in progress are throttled too")
    command = piped(
        plan_text(moves), verb_line(collector.settings, "reassign execute", flags, ["-"])
    )

    async def apply() -> str:
        current = await replicas_of_partitions(client, moves)
        silent = await start_moves(client, await origins_of(client, current), moves, bytes_per_s)
        return f"{counted(len(moves), 'move')} started{_not_throttled(silent)}"

    copied = size(_copied_bytes(plan, collector.snapshot))
    return PreparedChange(
        summary,
        tuple(lines),
        command,
        apply,
        tuple(warnings),
        notes=(f"about {copied} are copied between brokers",),
    )


async def _move(collector: Collector, values: Mapping[str, str]) -> PreparedChange:
    place = TopicPartition(
        values["topic"], required_number(values, "partition", 0, _MOST_PARTITION)
    )
    goal = broker_list(values, "replicas")
    current = await replicas_of_partitions(collector.client, [place])
    plan = ReplicaPlan(current, {place: goal})
    if not plan.moves:
        raise ChangeError(f"{place} is on brokers {_listed(goal)} already", "replicas")
    bytes_per_s = number_of(values, "throttle", 1, _MOST_RATE)
    return await _moves(collector, plan, bytes_per_s, f"Move {place} to brokers {_listed(goal)}")


async def _spread(collector: Collector, values: Mapping[str, str]) -> PreparedChange:
    topic = values["topic"]
    brokers = broker_list(values, "brokers") if values["brokers"] else None
    count = number_of(values, "replication_factor", 1, _MOST_REPLICAS)
    plan = await spread_replicas(collector.client, [topic], brokers, count=count)
    if not plan.moves:
        raise ChangeError(f"topic {topic} is already spread like this")
    bytes_per_s = number_of(values, "throttle", 1, _MOST_RATE)
    where = "all brokers" if brokers is None else f"brokers {_listed(brokers)}"
    summary = f"Move {counted(len(plan.moves), 'partition')} of {topic} to spread it over {where}"
    return await _moves(collector, plan, bytes_per_s, summary)


async def _chosen(collector: Collector, values: Mapping[str, str]) -> list[Reassignment]:
    topic = values["topic"]
    partition = number_of(values, "partition", 0, _MOST_PARTITION)
    if partition is not None and not topic:
        raise ChangeError("a partition needs a topic", "topic")
    chosen = [
        row
        for row in await list_reassignments(collector.client)
        if topic in {"", row.place.topic} and partition in {None, row.place.partition}
    ]
    if not chosen:
        raise ChangeError("no such move is in progress: it may have ended meanwhile")
    return chosen


async def _cancel(collector: Collector, values: Mapping[str, str]) -> PreparedChange:
    client = collector.client
    chosen = await _chosen(collector, values)
    await check_moves(client, {})
    is_all = len(chosen) == len(await list_reassignments(client))

    async def apply() -> str:
        count, silent = await cancel_moves(client, chosen)
        ended = len(chosen) - count
        text = f"; {counted(ended, 'move')} had ended meanwhile" if ended else ""
        return f"{counted(count, 'move')} canceled{text}{_kept(silent)}"

    command = verb_line(collector.settings, "reassign cancel", ["--yes"], [] if is_all else ["-"])
    plan = {row.place: row.goal for row in chosen}
    warnings = ["the copied data is deleted"]
    throttles = await throttles_of(client)
    if throttles.are_set:
        warnings.append("the throttles of all brokers are removed, also for other moves")
    lines = [
        f"{row.place}: brokers {_listed(row.replicas)} → {_listed(row.origin)}" for row in chosen
    ]
    lines += _removed_rates(throttles._replace(silent=[]))
    lines += _removed_lists(await throttled_topics(client, {row.place.topic for row in chosen}))
    return PreparedChange(
        f"Cancel {counted(len(chosen), 'move')}",
        tuple(lines),
        command if is_all else piped(plan_text(plan), command),
        apply,
        tuple(warnings),
    )


def _kept(silent: Sequence[int]) -> str:
    return _not_responding(silent, "may still be throttled")


def _not_throttled(silent: Sequence[int]) -> str:
    return _not_responding(silent, "are not throttled")


def _not_responding(silent: Sequence[int], result: str) -> str:
    return f"; brokers {_listed(silent)} do not respond and {result}" if silent else ""


def _rate(throttles: Throttles, broker: int) -> str:
    if broker in throttles.silent:
        return "does not respond"
    return size_rate(throttles.rates[broker]) if broker in throttles.rates else "no throttle"


def _removed_rates(throttles: Throttles) -> list[str]:
    lines = [
        f"broker {broker}: {_rate(throttles, broker)} → no throttle"
        for broker in sorted([*throttles.rates, *throttles.silent])
    ]
    return lines + [
        f"broker {broker}: {size_rate(rate)} between log directories → no throttle"
        for broker, rate in sorted(throttles.directory_rates.items())
    ]


def _removed_lists(topics: Iterable[str]) -> list[str]:
    return [f"topic {name}: its list of throttled replicas is removed" for name in sorted(topics)]


async def _throttle(collector: Collector, values: Mapping[str, str]) -> PreparedChange:
    client = collector.client
    bytes_per_s = required_number(values, "throttle", 1, _MOST_RATE)
    rows = await list_reassignments(client)
    if not rows:
        raise ChangeError("no moves are in progress")
    throttles = await throttles_of(client)
    brokers = sorted({broker for row in rows for broker in (*row.origin, *row.goal)})

    async def apply() -> str:
        silent = await throttle_moves(client, await list_reassignments(client), bytes_per_s)
        return f"moves are throttled to {size_rate(bytes_per_s)}{_not_throttled(silent)}"

    new = size_rate(bytes_per_s)
    return PreparedChange(
        f"Throttle all moves to {new} between two brokers",
        tuple(f"broker {broker}: {_rate(throttles, broker)} → {new}" for broker in brokers),
        verb_line(collector.settings, "reassign throttle", (), [str(bytes_per_s)]),
        apply,
        ("the throttle remains until it is removed, also after the moves",),
        notes=(f"{counted(len(rows), 'move')} in progress",),
    )


async def _unthrottle(collector: Collector, values: Mapping[str, str]) -> PreparedChange:
    client, topic = collector.client, values["topic"]
    throttles = await throttles_of(client)
    rows = await list_reassignments(client)
    if not throttles.are_set and not topic:
        raise ChangeError("no broker has a throttle")
    topics = {topic} if topic else {row.place.topic for row in rows}

    async def apply() -> str:
        return f"the throttle is removed{_kept(await unthrottle_moves(client, topics))}"

    return PreparedChange(
        "Remove the throttle of moves",
        (*_removed_rates(throttles), *_removed_lists(topics)),
        verb_line(collector.settings, "reassign unthrottle", (), [topic] if topic else []),
        apply,
        ("moves in progress continue at full speed",) if rows else (),
    )


_TOPIC: Final = Field("topic", "Topic")


def _kind(
    name: str,
    title: str,
    fields: tuple[Field, ...],
    prepare: Callable[[Collector, Mapping[str, str]], Awaitable[PreparedChange]],
    *,
    target: str = "topic",
) -> ChangeKind:
    return ChangeKind(name, title, ConsoleRole.ADMIN, fields, target, prepare, "reassignments")


KINDS: Final[tuple[ChangeKind, ...]] = (
    _kind(
        "move-partition",
        "Move a partition",
        (
            _TOPIC,
            Field("partition", "Partition", FieldKind.NUMBER),
            Field(
                "replicas",
                "Brokers",
                help="Brokers of its replicas, such as 1,2,3; the first is the preferred leader.",
            ),
            _THROTTLE,
        ),
        _move,
    ),
    _kind(
        "spread-topic",
        "Spread a topic over brokers",
        (
            _TOPIC,
            Field(
                "brokers", "Brokers", help="Such as 1,2,3; empty: all running.", is_required=False
            ),
            Field(
                "replication_factor",
                "Replicas of each partition",
                FieldKind.NUMBER,
                help="Empty: as many as now.",
                is_required=False,
            ),
            _THROTTLE,
        ),
        _spread,
    ),
    _kind(
        "cancel-moves",
        "Cancel moves of replicas",
        (
            Field("topic", "Topic", help="Empty: all moves.", is_required=False),
            Field(
                "partition",
                "Partition",
                FieldKind.NUMBER,
                help="Empty: all of the topic.",
                is_required=False,
            ),
        ),
        _cancel,
    ),
    _kind(
        "throttle-moves",
        "Throttle moves of replicas",
        (_THROTTLE._replace(is_required=True, help="Bytes per second between two brokers."),),
        _throttle,
        target="throttle",
    ),
    _kind(
        "unthrottle-moves",
        "Remove the throttle of moves",
        (
            Field(
                "topic",
                "Topic",
                help="Its list of throttled replicas is removed; empty: all topics being moved.",
                is_required=False,
            ),
        ),
        _unthrottle,
    ),
)
