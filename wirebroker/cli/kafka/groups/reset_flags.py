"""Flags of `--reset-offsets`, which the tools for groups share."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, TypedDict, TypeVar

import click

from wirebroker.base.clock import SystemClock
from wirebroker.cli.kafka.groups.offset_resets import Scenario, duration_ms, moment_ms
from wirebroker.cli.kafka.plumbing.script import first_value
from wirebroker.cli.plumbing.file_path import FilePath
from wirebroker.codecs.special_offsets import EARLIEST, LATEST

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import NotRequired

_Command = TypeVar("_Command", bound="Callable[..., int]")

# Kafka's tools use the first value.
_first_option = partial(click.option, multiple=True, callback=first_value)


class ResetFlags(TypedDict):
    """Flags of a reset; share groups have no `by_duration` and `shift_by`."""

    execute: bool
    dry_run: bool
    export: bool
    to_offset: int | None
    to_datetime: str | None
    to_earliest: bool
    to_latest: bool
    to_current: bool
    from_file: Path | None
    by_duration: NotRequired[str | None]
    shift_by: NotRequired[int | None]


_FLAGS: Final = (
    click.option("--execute", is_flag=True, help="With --reset-offsets: change the offsets."),
    click.option(
        "--dry-run",
        is_flag=True,
        help="With --reset-offsets: show the new offsets without changing them.",
    ),
    click.option("--export", is_flag=True, help="With --reset-offsets: print the offsets as CSV."),
    _first_option("--to-offset", type=int, metavar="N", help="Reset to this offset."),
    _first_option(
        "--to-datetime",
        metavar="TIME",
        help="Reset to the first record at or after this time: 2026-11-22T10:00:00.000.",
    ),
    click.option("--to-earliest", is_flag=True, help="Reset to the earliest offset."),
    click.option("--to-latest", is_flag=True, help="Reset to the latest offset."),
    click.option("--to-current", is_flag=True, help="Reset to the current offset."),
    _first_option(
        "--from-file",
        type=FilePath(exists=True),
        metavar="FILE",
        help="Reset to the offsets in a CSV file.",
    ),
)
_SHIFTS: Final = (
    click.option(
        "--by-duration", metavar="DURATION", help="Reset to this duration before now: P1DT2H3M4S."
    ),
    click.option(
        "--shift-by", type=int, metavar="N", help="Shift forward by N records, or back with -N."
    ),
)


def reset_flags(*, has_shifts: bool) -> Callable[[_Command], _Command]:
    """Return a decorator that adds the flags, with or without those relative to offsets."""

    def add(command: _Command) -> _Command:
        for option in reversed((*_FLAGS, *(_SHIFTS if has_shifts else ()))):
            command = option(command)
        return command

    return add


def scenario_of(flags: ResetFlags) -> Scenario:
    """Return the requested scenario, or raise click.UsageError unless there is exactly one."""
    scenarios: list[Scenario] = []
    offset, shift_by = flags["to_offset"], flags.get("shift_by")
    moment, duration = flags["to_datetime"], flags.get("by_duration")
    if offset is not None:
        scenarios.append(Scenario(offset=offset))
    if moment is not None:
        scenarios.append(Scenario(timestamp=moment_ms(moment)))
    if duration:
        scenarios.append(Scenario(timestamp=SystemClock().now_ms() - duration_ms(duration)))
    if flags["to_earliest"]:
        scenarios.append(Scenario(timestamp=EARLIEST))
    if flags["to_latest"]:
        scenarios.append(Scenario(timestamp=LATEST))
    if flags["to_current"]:
        scenarios.append(Scenario(to_current=True))
    if shift_by is not None:
        scenarios.append(Scenario(shift_by=shift_by))
    if flags["from_file"] is not None:
        scenarios.append(Scenario(file=flags["from_file"]))
    if len(scenarios) != 1:
        raise click.UsageError("give one scenario, such as --to-earliest or --from-file")
    return scenarios[0]
