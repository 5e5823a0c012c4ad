"""The differences between a transcript and a broker's responses, as sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.transcripts.driver import Driver
    from tests.transcripts.script import Step


def found_differences(steps: Sequence[Step], driver: Driver) -> list[str]:
    return [line for step in steps for line in differences(step, driver.answer(step))]


def differences(recorded: Step, actual: Sequence[str]) -> list[str]:
    """Return a heading and a sentence for each difference, or []."""
    if list(recorded.answer) == list(actual):
        return []
    command = " ".join(recorded.command)
    heading = f"line {recorded.line_number}, {command}:"
    return [heading, *(f"  {sentence}" for sentence in sentences(recorded.answer, actual))]


def sentences(recorded: Sequence[str], actual: Sequence[str]) -> Iterator[str]:
    kafka_values, wirebroker_values = _by_path(recorded), _by_path(actual)
    if kafka_values == wirebroker_values:
        yield "the same in another order"
    for path, value in kafka_values.items():
        if path not in wirebroker_values:
            yield f"{path}: Kafka says {value}, we leave it out"
        elif wirebroker_values[path] != value:
            yield f"{path}: Kafka says {value}, we say {wirebroker_values[path]}"
    for path, value in wirebroker_values.items():
        if path not in kafka_values:
            yield f"{path}: we say {value}, Kafka leaves it out"


def _by_path(lines: Sequence[str]) -> dict[str, str]:
    """Split `path = value`; other lines are their own paths."""
    pairs = (line.partition(" = ") for line in lines)
    return {path: value or "so" for path, _, value in pairs}
