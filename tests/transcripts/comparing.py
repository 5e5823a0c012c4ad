"""The differences between a transcript and a broker's responses, as sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.transcripts.driver import Driver
    from tests.transcripts.script import Step


def found_differences(steps: Sequence[Step], driver: Driver) -> list[str]:
    return [line for step in steps for line in differences(step, driver.answer(step))]


def differences(recorded: Step, answered: Sequence[str]) -> list[str]:
    """Return a heading and a sentence for each difference, or []."""
    if list(recorded.answer) == list(answered):
        return []
    what = " ".join(recorded.command)
    heading = f"line {recorded.line_number}, {what}:"
    return [heading, *(f"  {sentence}" for sentence in sentences(recorded.answer, answered))]


def sentences(recorded: Sequence[str], answered: Sequence[str]) -> Iterator[str]:
    kafka, ours = _by_path(recorded), _by_path(answered)
    if kafka == ours:
        yield "the same in another order"
    for path, value in kafka.items():
        if path not in ours:
            yield f"{path}: Kafka says {value}, we leave it out"
        elif ours[path] != value:
            yield f"{path}: Kafka says {value}, we say {ours[path]}"
    for path, value in ours.items():
        if path not in kafka:
            yield f"{path}: we say {value}, Kafka leaves it out"


def _by_path(lines: Sequence[str]) -> dict[str, str]:
    """Split `path = value`; other lines are their own paths."""
    pairs = (line.partition(" = ") for line in lines)
    return {path: value or "so" for path, _, value in pairs}
