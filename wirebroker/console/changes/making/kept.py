"""Bounded texts of a change that has ended, and nothing that could make it again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.console.changes.change import MOST_CHARACTERS, PreparedChange

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.console.changes.change import ChangeKind

MOST_LINES: Final = 1000


def without_work(prepared: PreparedChange) -> PreparedChange:
    """Return the texts of a change, shortened, with an `apply` that makes nothing."""
    return prepared._replace(
        summary=shortened(prepared.summary),
        lines=_first(prepared.lines),
        command=shortened(prepared.command),
        apply=_made_nothing,
        warnings=_first(prepared.warnings),
        notes=_first(prepared.notes),
        progress=None,
        logged=None,
    )


def hidden_plan(kind: ChangeKind) -> PreparedChange:
    """Return a plan with only the title, for users without a role in one of its clusters."""
    return PreparedChange(kind.title, (), "", _made_nothing)


def shortened(text: str, most: int = MOST_CHARACTERS) -> str:
    """Return a text of at most so many characters, and its length if it was longer."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text)} characters)"


def _first(lines: Sequence[str]) -> tuple[str, ...]:
    """Return the first lines, and how many there are besides."""
    kept: list[str] = []
    room = MOST_CHARACTERS
    for line in lines[:MOST_LINES]:
        if len(line) > room:
            break
        kept.append(line)
        room -= len(line)
    further = len(lines) - len(kept)
    return (*kept, *([f"and {further:,} more"] if further else []))


async def _made_nothing() -> str:
    return ""
