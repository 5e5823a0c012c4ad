"""Changes that move the committed offsets of a group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.base.durations import ago_ms
from wirebroker.base.text import counted
from wirebroker.client.changes.offset_moves import (
    OffsetTarget,
    check_moves,
    move_offsets,
    planned_moves,
)
from wirebroker.client.groups.share_groups import SHARE
from wirebroker.client.groups.streams_groups import STREAMS
from wirebroker.codecs.special_offsets import EARLIEST, LATEST
from wirebroker.console.changes.change import (
    ChangeError,
    ChangeKind,
    ConsoleRole,
    Field,
    FieldKind,
    PreparedChange,
)
from wirebroker.console.changes.command_line import verb_line
from wirebroker.console.changes.field_values import choices_of, number_of, time_flag, time_of
from wirebroker.console.view.formats import number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wirebroker.client.changes.offset_moves import OffsetMove
    from wirebroker.client.topics.partition_choice import TopicChoice
    from wirebroker.console.model.collector import Collector

_START, _END, _OFFSET, _TIME, _SHIFT = "start", "end", "offset", "time", "shift"
_TARGETS: Final = (
    (_START, "The start"),
    (_END, "The end"),
    (_TIME, "A time, or a duration ago"),
    (_OFFSET, "An offset"),
    (_SHIFT, "A number of records later, or earlier (negative)"),
)
_MOST_SHIFT: Final = (1 << 62) - 1


async def _reset(collector: Collector, values: Mapping[str, str]) -> PreparedChange:
    group = values["group"]
    client = collector.client
    choices = choices_of(values, "topics")
    target = _target(values, client.clock.now_ms())
    plan = await planned_moves(client, group, target, choices)
    if not plan.moves:
        raise ChangeError(f"group {group} has no committed offsets there to move", "topics")
    await check_moves(client, plan)

    async def apply() -> str:
        await move_offsets(client, plan)
        return f"{counted(len(plan.moves), 'offset')} of group {group} moved"

    # Ends, and times that pass, move by themselves.
    is_moving = values["to"] == _END or ago_ms(values["value"].strip()) is not None
    verb = "share seek" if plan.kind == SHARE else "group seek"
    flags = [*_target_flags(values), *_topic_flags(choices), "--yes"]
    return PreparedChange(
        f"Move {counted(len(plan.moves), 'offset')} of group {group} to {_words(values)}",
        _places(plan.moves) if is_moving else tuple(_stable_line(move) for move in plan.moves),
        verb_line(collector.settings, verb, flags, [group]),
        apply,
        warnings=_warnings(plan.kind, is_new=plan.is_new),
        notes=tuple(_line(move) for move in plan.moves if is_moving or move.is_to_end),
    )


def _target(values: Mapping[str, str], now_ms: int) -> OffsetTarget:
    """Return the target of the move.

    Raises:
        ChangeError: The value is missing, has another form, or is not needed.
    """
    to = values["to"]
    if to in {_START, _END}:
        if values["value"].strip():
            raise ChangeError("this needs no value: leave it empty", "value")
        return OffsetTarget(timestamp=EARLIEST if to == _START else LATEST)
    if to == _TIME:
        time_ms = time_of(values, "value", now_ms)
        target = OffsetTarget(timestamp=time_ms)
    elif to == _OFFSET:
        target = OffsetTarget(offset=number_of(values, "value", 0))
    else:
        target = OffsetTarget(shift=number_of(values, "value", -_MOST_SHIFT, _MOST_SHIFT))
    if target == OffsetTarget():
        raise ChangeError("a value is missing", "value")
    return target


def _target_flags(values: Mapping[str, str]) -> list[str]:
    value = values["value"].strip()
    return {
        _TIME: lambda: ["--to-time", time_flag(value)],
        _SHIFT: lambda: ["--by", value],
        _OFFSET: lambda: ["--to", value],
    }.get(values["to"], lambda: ["--to", values["to"]])()


def _topic_flags(choices: Sequence[TopicChoice]) -> list[str]:
    return [part for choice in choices for part in ("-t", str(choice))]


def _words(values: Mapping[str, str]) -> str:
    value = values["value"].strip()
    if values["to"] == _SHIFT:
        return f"{value} records from there"
    if values["to"] == _OFFSET:
        return f"offset {value}"
    return f"the time {value}" if values["to"] == _TIME else f"the {values['to']}"


def _places(moves: Sequence[OffsetMove]) -> tuple[str, ...]:
    topics: dict[str, int] = {}
    for move in moves:
        topics[move.place.topic] = topics.get(move.place.topic, 0) + 1
    return tuple(f"{topic}: {counted(count, 'partition')}" for topic, count in topics.items())


def _stable_line(move: OffsetMove) -> str:
    """Return a line that stays the same while records are written."""
    if not move.is_to_end:
        return _line(move)
    before = "no offset" if move.committed is None else number(move.committed)
    return f"{move.place}: {before} → the end"


def _line(move: OffsetMove) -> str:
    if move.committed is None:
        return f"{move.place}: no offset → {number(move.goal)}"
    step = move.goal - move.committed
    direction = "later" if step > 0 else "earlier"
    change = f"{counted(abs(step), 'record')} {direction}" if step else "unchanged"
    return f"{move.place}: {number(move.committed)} → {number(move.goal)} ({change})"


def _warnings(kind: str, *, is_new: bool) -> tuple[str, ...]:
    warnings: list[str] = []
    if is_new:
        warnings.append("There is no such group yet: the change creates it.")
    if kind == STREAMS:
        warnings.append(
            "Only the input topics' offsets are moved: stores and internal topics keep what was"
            " computed from later records."
        )
    return tuple(warnings)


KINDS: Final[tuple[ChangeKind, ...]] = (
    ChangeKind(
        "reset-offsets",
        "Reset offsets of a group",
        ConsoleRole.OPERATOR,
        (
            Field("group", "Group", help="It must have no members."),
            Field("to", "Move to", FieldKind.CHOICE, choices=_TARGETS),
            Field(
                "value",
                "Value",
                help="2026-11-22T10:00 (UTC), 2h for two hours ago, an offset, or a number.",
                is_required=False,
            ),
            Field(
                "topics",
                "Topics",
                FieldKind.LONG_TEXT,
                "A line for each, such as orders, or orders:0,1; if empty, all of the group.",
                is_required=False,
            ),
        ),
        "group",
        _reset,
        "groups",
        "group",
    ),
)
