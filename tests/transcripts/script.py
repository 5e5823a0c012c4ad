"""The text of a transcript: commands, their arguments, and the recorded responses.

    # A sentence or two about what comes next.
    send CreateTopics 7
        timeout_ms = 30000
        topics = [{"name": "made", "num_partitions": 1, "replication_factor": 1}]
    ----
    topics[0].name = "made"
    topics[0].error_code = 36 TOPIC_ALREADY_EXISTS

A step begins at a line that is neither indented nor a comment. The indented lines below it are its
arguments; the lines from `----` to the next empty line are the response. `driver.py` lists the
commands.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_ANSWER = "----"


class ScriptError(Exception):
    """A transcript is invalid; the message names the line."""


@dataclass(slots=True, frozen=True)
class Step:
    line_number: int
    command: tuple[str, ...]
    arguments: str  # Python assignments, without the indentation
    answer: tuple[str, ...] = ()
    comment: tuple[str, ...] = ()  # the lines above it
    argument_lines: tuple[str, ...] = field(default=(), compare=False)

    def with_answer(self, answer: Iterable[str]) -> Step:
        return replace(self, answer=tuple(answer))


def parse(text: str) -> list[Step]:
    """Return the steps of a transcript.

    Raises:
        ScriptError: A line is in the wrong place.
    """
    lines = text.splitlines()
    steps: list[Step] = []
    at = 0
    while at < len(lines):
        comment, at = _take(lines, at, lambda line: not line.strip() or line.startswith("#"))
        if at == len(lines):
            break
        number, command = at + 1, lines[at]
        if command.startswith((" ", _ANSWER)):
            raise ScriptError(f"line {number}: {command!r} stands where a command should")
        arguments, at = _take(lines, at + 1, lambda line: line.startswith(" "))
        answer: list[str] = []
        if at < len(lines) and lines[at] == _ANSWER:
            answer, at = _take(lines, at + 1, lambda line: bool(line.strip()))
        steps.append(
            Step(
                line_number=number,
                command=tuple(command.split()),
                arguments="\n".join(line.removeprefix("    ") for line in arguments),
                answer=tuple(answer),
                comment=tuple(line for line in comment if line.strip()),
                argument_lines=tuple(arguments),
            )
        )
    return steps


def render(steps: Iterable[Step]) -> str:
    """Return the text of a transcript, the inverse of `parse`."""
    parts: list[str] = []
    for step in steps:
        lines = [*step.comment, " ".join(step.command), *step.argument_lines]
        parts.append("\n".join([*lines, _ANSWER, *step.answer]) + "\n")
    return "\n".join(parts)


def _take(lines: list[str], at: int, belongs: Callable[[str], bool]) -> tuple[list[str], int]:
    start = at
    while at < len(lines) and belongs(lines[at]):
        at += 1
    return lines[start:at], at
