"""Flags of several verbs; callbacks of click parse their values."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from wirebroker.base.clock import SystemClock
from wirebroker.base.durations import UNITS_MS, ago_ms
from wirebroker.client.topics.partition_choice import partition_numbers
from wirebroker.codecs.records.codec import CODECS
from wirebroker.codecs.special_offsets import EARLIEST, LATEST

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.codecs.records.codec import Codec

_Command = TypeVar("_Command", bound="Callable[..., int]")

TIME_FORMAT: Final = "2026-11-22T10:00, ms since 1970, or 2h for two hours ago"

# Positions by name.
START_WORDS: Final = {"start": EARLIEST, "end": LATEST}
_DURATION: Final = re.compile(r"(0{0,8}[1-9][0-9]{0,8})([smhdw])")


def yes_flag(command: _Command) -> _Command:
    """Add `--yes`, without which nothing is changed."""
    return click.option(
        "--yes", is_flag=True, help=("Make the change instead of only showing it.")
    )(command)


def dry_run_hint(effect: str) -> str:
    """Return the line after a dry run."""
    return f"nothing is changed: this {effect}; add --yes to do it"


def _codec_of_flag(_context: click.Context, _option: click.Parameter, name: str) -> Codec:
    return CODECS[name]


def compression_flag(command: _Command) -> _Command:
    """Add `--compression`, whose value is a codec."""
    return click.option(
        "-z",
        "--compression",
        "codec",
        type=click.Choice(list(CODECS)),
        callback=_codec_of_flag,
        default="none",
        help="Compression codec. [default: none]",
    )(command)


def codec_named(name: str) -> Codec:
    """Return the codec of a client's compression.type.

    Raises:
        click.UsageError: There is none.
    """
    if name not in CODECS:
        raise click.UsageError(f"there is no codec {name}; write one of {', '.join(CODECS)}")
    return CODECS[name]


def start_position(_context: click.Context, _option: click.Parameter, text: str | None, /) -> Any:
    """Parse start, end or an offset."""
    if text is None or text in START_WORDS:
        return text
    if not (text.isascii() and text.isdigit()):
        raise click.UsageError(f"--to {text}: write start, end or an offset")
    return int(text)


def partition_list(
    _context: click.Context, _option: click.Parameter, text: str | None, /
) -> list[int] | None:
    """Parse comma-separated partitions."""
    if text is None:
        return None
    try:
        return list(partition_numbers(text))
    except ValueError as error:
        raise click.UsageError(str(error)) from None


partitions_flag: Final = click.option(
    "-p",
    "--partition",
    "partitions",
    callback=partition_list,
    metavar="N,...",
    help="Limit to these partitions.",
)


def escaped_text(
    _context: click.Context, _option: click.Parameter, text: str | None, /
) -> bytes | None:
    r"""Parse text with escapes such as `\t`."""
    if text is None:
        return None
    from wirebroker.cli.plumbing.record_format import text_of  # noqa: PLC0415 - for few verbs

    try:
        return text_of(text)
    except ValueError as error:
        raise click.UsageError(f"{text!r}: {error}") from None


def record_flags(command: _Command) -> _Command:
    """Add `--json` and `--format`, which choose how records are printed."""
    form = click.option(
        "-f",
        "--format",
        "form",
        metavar="TEXT",
        help=r"Format as in kcat: %s value, %k key, %t topic, %p partition, %o offset,"
        r" %T timestamp, %h headers, \n. [default: %s\n]",
    )
    as_json = click.option(
        "--json", "as_json", is_flag=True, help="Print one JSON object per line."
    )
    return as_json(form(command))


def time_ms(_context: click.Context, _option: click.Parameter, text: str | None, /) -> int | None:
    """Parse a time: how long ago, ms since 1970, or ISO 8601 (local time)."""
    if text is None:
        return None
    ago = ago_ms(text)
    if ago is not None:
        return SystemClock().now_ms() - ago
    if text.isascii() and text.isdigit():
        return int(text)
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    except ValueError:
        raise click.UsageError(f"{text!r} is not a time: write {TIME_FORMAT}") from None


def duration_ms(
    _context: click.Context, _option: click.Parameter, text: str | None, /
) -> int | None:
    """Parse a duration such as 30s, 15m, 12h, 7d or 2w."""
    if text is None:
        return None
    match = _DURATION.fullmatch(text)
    if match is None:
        raise click.UsageError(f"{text!r} is not a duration: write 30s, 15m, 12h, 7d or 2w")
    return int(match[1]) * UNITS_MS[match[2]]
