"""Flags that the tools for groups share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

import click

from wirebroker.cli.plumbing.completed_names import GROUP_NAME, TOPIC_NAME

if TYPE_CHECKING:
    from collections.abc import Callable

_Command = TypeVar("_Command", bound="Callable[..., int]")

group_flag: Final = click.option(
    "--group", "groups", multiple=True, type=GROUP_NAME, metavar="GROUP", help="Group to use."
)
topic_flag: Final = click.option(
    "--topic",
    "topics",
    multiple=True,
    type=TOPIC_NAME,
    metavar="TOPIC[:N,...]",
    help="Limit to these topics or partitions.",
)
state_flag: Final = click.option(
    "--state",
    is_flag=False,
    flag_value="",
    metavar="[STATE,...]",
    help="With --describe: show the state. With --list: show it, or only groups in these states.",
)


def detail_flags(command: _Command) -> _Command:
    """Add `--members` and `--offsets`, which choose what `--describe` shows."""
    members = click.option("--members", is_flag=True, help="With --describe: show the members.")
    offsets = click.option(
        "--offsets", is_flag=True, help="With --describe: show the offsets (the default)."
    )
    return members(offsets(command))
