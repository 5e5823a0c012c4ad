"""Changes that copy the records of a topic to another one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.base.durations import ago_ms
from wirebroker.base.text import counted
from wirebroker.client.records.copying import (
    FROM_START,
    TO_END,
    RangeBound,
    RecordCopier,
    planned_copy,
)
from wirebroker.console.changes.change import (
    ChangeError,
    ChangeKind,
    ConsoleRole,
    Field,
    FieldKind,
    PreparedChange,
)
from wirebroker.console.changes.command_line import verb_line
from wirebroker.console.changes.field_values import (
    number_of,
    partitions_of_field,
    time_flag,
    time_of,
)
from wirebroker.console.view.formats import number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.client.records.copying import CopyPlan
    from wirebroker.console.model.collector import Collector

_MOST_RECORDS: Final = 10_000_000
_DEFAULT_RECORDS: Final = 100_000
_YES: Final = "yes"


async def _copy(collector: Collector, values: Mapping[str, str]) -> PreparedChange:
    client = collector.client
    now_ms = client.clock.now_ms()
    most = number_of(values, "most", 1, _MOST_RECORDS)
    begin = _bound(values, "from", now_ms)
    end = _bound(values, "until", now_ms)
    plan = await planned_copy(
        client,
        values["source"],
        values["topic"],
        partitions=partitions_of_field(values, "partitions"),
        begin=begin or FROM_START,
        end=end or TO_END,
        keeps_partitions=values["keep_partitions"] == _YES,
        most=most,
    )
    if not plan.offsets:
        raise ChangeError(f"topic {plan.source} has no committed records in this range", "source")
    copier = RecordCopier(client, plan)

    async def apply() -> str:
        await copier.run()
        return f"{counted(copier.copied, 'record')} copied from {plan.source} to {plan.target}"

    def progress() -> str:
        return f"{number(copier.copied)} records, {number(copier.passed)} of {total} offsets"

    total = number(plan.offsets)
    ranges, stable = _range_texts(plan, is_exact=True), _range_texts(plan, is_exact=False)
    # With a bound that moves, so do the offsets.
    is_moving = end is None or any(_is_ago(values, name) for name in ("from", "until"))
    lines = [
        f"source: topic {plan.source}, {counted(len(plan.ranges), 'partition')}",
        f"from: {_bound_text(values, 'from') or 'the start'}",
        f"until: {_bound_text(values, 'until') or 'the current end'}",
        f"at most {number(most)} records",
        "partitions: the same numbers" if plan.keeps_partitions else "partitions: by key",
        *(() if is_moving else stable),
    ]
    return PreparedChange(
        f"Copy records of topic {plan.source} to topic {plan.target}",
        tuple(lines),
        verb_line(collector.settings, "topic copy", _flags(values), [plan.source, plan.target]),
        apply,
        notes=tuple(text for text in ranges if is_moving or text not in stable),
        progress=progress,
    )


def _bound(values: Mapping[str, str], name: str, now_ms: int) -> RangeBound | None:
    """Return where the range begins (`from`) or ends (`until`), if it is entered."""
    offset = number_of(values, f"{name}_offset", 0)
    time_ms = time_of(values, f"{name}_time", now_ms)
    if offset is not None and time_ms is not None:
        raise ChangeError("write either an offset or a time", f"{name}_offset")
    if offset is not None:
        return RangeBound(offset=offset)
    return None if time_ms is None else RangeBound(timestamp=time_ms)


def _is_ago(values: Mapping[str, str], name: str) -> bool:
    return ago_ms(values[f"{name}_time"].strip()) is not None


def _bound_text(values: Mapping[str, str], name: str) -> str:
    offset, moment = values[f"{name}_offset"].strip(), values[f"{name}_time"].strip()
    return f"offset {offset}" if offset else moment


def _range_texts(plan: CopyPlan, *, is_exact: bool) -> tuple[str, ...]:
    """Return a line for each range; an end that moves is only named unless `is_exact`."""
    return tuple(
        f"partition {part.place.partition}: offsets {number(part.begin)} to"
        f" {number(part.end - 1) if is_exact or not part.is_to_end else 'the end'}"
        for part in plan.ranges
        if part.begin < part.end
    )


def _flags(values: Mapping[str, str]) -> list[str]:
    flags: list[str] = []
    for name in ("from", "until"):
        offset, moment = values[f"{name}_offset"].strip(), values[f"{name}_time"].strip()
        if offset:
            flags += [f"--{name}-offset", offset]
        elif moment:
            flags += [f"--{name}-time", time_flag(moment)]
    partitions = partitions_of_field(values, "partitions")
    flags += [] if partitions is None else ["-p", ",".join(map(str, partitions))]
    flags += ["--keep-partitions"] if values["keep_partitions"] == _YES else []
    return [*flags, "-n", values["most"].strip(), "--yes"]


def _optional(name: str, label: str, hint: str, kind: FieldKind = FieldKind.TEXT) -> Field:
    return Field(name, label, kind, hint, is_required=False)


_TIME_HELP: Final = "2026-11-22T10:00, or 2h for two hours ago."

KINDS: Final[tuple[ChangeKind, ...]] = (
    ChangeKind(
        "copy-records",
        "Copy records to another topic",
        ConsoleRole.OPERATOR,
        (
            Field("source", "From topic"),
            Field("topic", "To topic", help="It must exist."),
            _optional("partitions", "Partitions", "Such as 0,1,2; if empty, all."),
            _optional("from_offset", "From offset", "In each partition.", FieldKind.NUMBER),
            _optional("from_time", "From time (UTC)", _TIME_HELP),
            _optional(
                "until_offset", "Until offset", "The first one not to copy.", FieldKind.NUMBER
            ),
            _optional("until_time", "Until time (UTC)", _TIME_HELP),
            _optional("most", "At most", "Records; the copy then ends.", FieldKind.NUMBER)._replace(
                default=str(_DEFAULT_RECORDS)
            ),
            _optional(
                "keep_partitions",
                "Keep partitions",
                "Otherwise the key determines the partition, as in Java's producer.",
                FieldKind.YES_NO,
            ),
        ),
        "topic",
        _copy,
        "topics",
        "topic/messages",
    ),
)
