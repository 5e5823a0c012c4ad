"""A step of the nightly run."""

from __future__ import annotations

from dataclasses import dataclass

_PYTEST = ("pytest", "--color=no", "-p", "no:cacheprovider", "-s", "--timeout", "36000")


@dataclass(slots=True, frozen=True)
class Step:
    """One long target.

    Args:
        name: Argument that selects it.
        command: Arguments after `python -m`.
        minutes: Approximate duration on two idle cores.
        what: Description.
        kafka: Version of Apache Kafka; None: the reference version.
        nights: Nights from one run to the next. Steps that test what changes rarely (Apache Kafka
            itself, the suites of clients) do not run each night; some take turns.
    """

    name: str
    command: tuple[str, ...]
    minutes: int
    what: str
    kafka: str | None = None
    nights: int = 1


def pytest_of(*arguments: str) -> tuple[str, ...]:
    return (*_PYTEST, *arguments)
