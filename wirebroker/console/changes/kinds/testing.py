"""The clock and the faults of a broker in test mode."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.base.text import counted
from wirebroker.console.broker_http.control_calls import (
    control_line,
    controlled_clock,
    controlled_faults,
    run_control,
)
from wirebroker.console.changes.change import (
    ChangeError,
    ChangeKind,
    ConsoleRole,
    Field,
    FieldKind,
    PreparedChange,
)
from wirebroker.console.changes.field_values import number_of
from wirebroker.console.changes.numbers import required_number
from wirebroker.console.view.formats import duration_ms, iso_time, parsed_time

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from wirebroker.console.broker_http.control_calls import ControlledFault
    from wirebroker.console.model.collector import Collector

_UNITS_MS: Final = {"seconds": 1000, "minutes": 60_000, "hours": 3_600_000, "days": 86_400_000}
_MOST_AMOUNT: Final = 1_000_000_000
_MOST_MS: Final = 86_400_000
_MOST_TIMES: Final = (1 << 31) - 1
_FAULT_KINDS: Final = (
    ("error", "return an error"),
    ("disconnect", "close the connection"),
    ("delay", "delay the response"),
    ("throttle", "throttle the client"),
    ("blackhole", "never respond"),
    ("fail_fsync", "fail when files are synced"),
    ("disk_full", "fail as if the disk were full"),
)
_BEFORE_APPEND: Final = "before_append"
_OF_TIME: Final = frozenset({"delay", "throttle"})
_OF_DISK: Final = frozenset({"fail_fsync", "disk_full"})
_DUE: Final = "work that is due by then is done first: retention, timeouts, expired sessions"


async def _move(
    collector: Collector, arguments: Mapping[str, Any], summary: str, line: str, *notes: str
) -> PreparedChange:
    cluster = collector.settings
    state = await controlled_clock(cluster)

    async def apply() -> str:
        await run_control(cluster, "move-clock", arguments)
        return f"the broker's clock shows {iso_time((await controlled_clock(cluster)).now_ms)}"

    return PreparedChange(
        summary,
        (line,),
        control_line(cluster, "move-clock", arguments),
        apply,
        notes=(f"the clock shows {iso_time(state.now_ms)} now", *notes),
    )


async def _advance(collector: Collector, values: Mapping[str, str]) -> PreparedChange:
    amount = required_number(values, "amount", 1, _MOST_AMOUNT)
    by_ms = amount * _UNITS_MS[values["unit"]]
    return await _move(
        collector,
        {"advance_ms": by_ms},
        f"Advance the broker's clock by {duration_ms(by_ms)}",
        _DUE,
    )


async def _set(collector: Collector, values: Mapping[str, str]) -> PreparedChange:
    try:
        time_ms = parsed_time(values["time"])
    except ValueError as error:
        raise ChangeError(str(error), "time") from None
    return await _move(
        collector,
        {"set_ms": time_ms},
        f"Set the broker's clock to {iso_time(time_ms)}",
        f"{_DUE}; an earlier time moves only the wall clock",
    )


async def _run(collector: Collector, values: Mapping[str, str]) -> PreparedChange:
    state = values["state"]
    clock = await controlled_clock(collector.settings)
    if state == "machine":
        return await _move(
            collector,
            {"reset": True},
            "Set the broker's clock to the machine's time",
            f"{duration_ms(abs(clock.ahead_ms))}"
            f" {'ahead' if clock.ahead_ms >= 0 else 'behind'} → the machine's time",
        )
    stops = state == "stopped"
    if clock.is_stopped is stops:
        raise ChangeError("the clock stands still already" if stops else "the clock runs already")
    return await _move(
        collector,
        {"freeze": stops},
        "Stop the broker's clock" if stops else "Start the broker's clock",
        "running → stopped" if stops else "stopped → running",
    )


def _fault(values: Mapping[str, str]) -> dict[str, Any]:
    kind = values["fault"]
    if kind == "error" and not (values["api"] and values["error"]):
        missing = "error" if values["api"] else "api"
        raise ChangeError("an error needs a request and an error code", missing)
    if kind in _OF_TIME and not values["delay_ms"]:
        raise ChangeError("for how many milliseconds?", "delay_ms")
    _check_unused(kind, values)
    return {
        "kind": kind,
        "api": values["api"].upper() or None,
        "topic": values["topic"] or None,
        "client_id": values["client_id"] or None,
        "error": (values["error"].upper() or None) if kind == "error" else None,
        "when": values["when"] if kind == "disconnect" else None,
        "delay_ms": number_of(values, "delay_ms", 1, _MOST_MS) if kind in _OF_TIME else None,
        "times": number_of(values, "times", 1, _MOST_TIMES),
    }


def _check_unused(kind: str, values: Mapping[str, str]) -> None:
    """Refuse values that a fault of this kind does not have."""
    if values["error"] and kind != "error":
        raise ChangeError("only the fault “error” has an error code: leave it empty", "error")
    if values["delay_ms"] and kind not in _OF_TIME:
        raise ChangeError(
            "only a delay or a throttle has milliseconds: leave them empty", "delay_ms"
        )
    if values["when"] != _BEFORE_APPEND and kind != "disconnect":
        raise ChangeError(
            "“When” applies only to a closed connection: leave it at “before records are written”",
            "when",
        )
    given = [name for name in ("api", "topic", "client_id") if values[name]]
    if given and kind in _OF_DISK:
        raise ChangeError("a fault of the disk has no requests: leave this empty", given[0])


async def _add_fault(collector: Collector, values: Mapping[str, str]) -> PreparedChange:
    cluster, arguments = collector.settings, _fault(values)
    existing = await controlled_faults(cluster)

    async def apply() -> str:
        return f"fault {await run_control(cluster, 'add-fault', arguments)} is set"

    given = {name: value for name, value in arguments.items() if value is not None}
    times = arguments["times"]
    lines = [f"{name}: {value}" for name, value in given.items() if name != "times"]
    lines.append("acts always" if times is None else f"acts {counted(times, 'time')}")
    warnings: list[str] = []
    if _is_for_all(given):
        warnings.append("all requests are affected, also those of this console")
    return PreparedChange(
        f"Set a fault: {dict(_FAULT_KINDS)[values['fault']]}",
        tuple(lines),
        control_line(cluster, "add-fault", arguments),
        apply,
        tuple(warnings),
        notes=(f"{counted(len(existing), 'fault')} set before it",) if existing else (),
    )


def _is_for_all(fault: Mapping[str, Any]) -> bool:
    return fault["kind"] not in _OF_DISK and not fault.keys() & {"api", "topic", "client_id"}


def fault_text(fault: ControlledFault) -> str:
    """Return a fault in words."""
    parts = [fault.kind.replace("_", " ")]
    parts += [word for word in (fault.error, fault.api, fault.topic, fault.client_id) if word]
    return " ".join(parts)


async def _remove_faults(collector: Collector, values: Mapping[str, str]) -> PreparedChange:
    cluster = collector.settings
    number = number_of(values, "number", 1, _MOST_TIMES)
    faults = [row for row in await controlled_faults(cluster) if number in {None, row.number}]
    if not faults:
        raise ChangeError("there is no such fault: it may have been removed meanwhile", "number")

    async def apply() -> str:
        await run_control(cluster, "remove-fault", {"id": number})
        return f"{counted(len(faults), 'fault')} removed"

    return PreparedChange(
        f"Remove {counted(len(faults), 'fault')}",
        tuple(f"- {row.number}: {fault_text(row)}" for row in faults),
        control_line(cluster, "remove-fault", {"id": number}),
        apply,
    )


def _kind(
    name: str,
    title: str,
    fields: tuple[Field, ...],
    prepare: Callable[[Collector, Mapping[str, str]], Awaitable[PreparedChange]],
) -> ChangeKind:
    target = fields[0].name
    return ChangeKind(name, title, ConsoleRole.OPERATOR, fields, target, prepare, "testing")


KINDS: Final[tuple[ChangeKind, ...]] = (
    _kind(
        "advance-clock",
        "Advance the clock",
        (
            Field("amount", "By", FieldKind.NUMBER),
            Field(
                "unit",
                "Unit",
                FieldKind.CHOICE,
                default="minutes",
                choices=tuple((unit, unit) for unit in _UNITS_MS),
            ),
        ),
        _advance,
    ),
    _kind(
        "set-clock",
        "Set the clock",
        (Field("time", "Time (UTC)", help="Such as 2026-11-22T10:00, or ms since 1970."),),
        _set,
    ),
    _kind(
        "run-clock",
        "Stop or start the clock",
        (
            Field(
                "state",
                "Clock",
                FieldKind.CHOICE,
                default="stopped",
                choices=(
                    ("stopped", "stopped"),
                    ("running", "running"),
                    ("machine", "running, with the machine's time"),
                ),
            ),
        ),
        _run,
    ),
    _kind(
        "add-fault",
        "Set a fault",
        (
            Field("fault", "Fault", FieldKind.CHOICE, default="error", choices=_FAULT_KINDS),
            Field("api", "Request", help="Such as PRODUCE; empty: any.", is_required=False),
            Field("error", "Error", help="Such as NOT_LEADER_OR_FOLLOWER.", is_required=False),
            Field("topic", "Topic", help="Empty: any.", is_required=False),
            Field("client_id", "Client id", help="Empty: any.", is_required=False),
            Field(
                "delay_ms",
                "Milliseconds",
                FieldKind.NUMBER,
                help="For a delay or a throttle.",
                is_required=False,
            ),
            Field(
                "when",
                "When",
                FieldKind.CHOICE,
                help="For a closed connection.",
                default=_BEFORE_APPEND,
                choices=(
                    (_BEFORE_APPEND, "before records are written"),
                    ("after_append", "after records are written"),
                ),
            ),
            Field(
                "times",
                "How often",
                FieldKind.NUMBER,
                help="Empty: always.",
                is_required=False,
            ),
        ),
        _add_fault,
    ),
    _kind(
        "remove-faults",
        "Remove faults",
        (Field("number", "Number", FieldKind.NUMBER, help="Empty: all.", is_required=False),),
        _remove_faults,
    ),
)
