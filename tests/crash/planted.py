"""Looks for a planted mistake: the harness must see it within some thousand points."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from tests.crash.cutting import Point, kinds_at
from wirebroker.codecs.errors import KafkaError
from wirebroker.config.rows.row import StartError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.crash.points import Run

_ENOUGH = 4_000
# What a log or a broker says of what cannot be, and what the checks say.
_FOUND = (AssertionError, KafkaError, StartError, OSError)


def first_failure(
    make: Callable[[int], Run], *, every: float = 1.0, enough: int = _ENOUGH
) -> Exception | None:
    """Return what the first point that fails says; None if all hold.

    Args:
        make: Returns the run of a seed.
        every: Share of a run's events that it is cut at.
        enough: Points after which it gives up.
    """
    points = 0
    seed = 0
    while points < enough:
        seed += 1
        random = Random(seed)
        try:
            run = make(seed)
            for event, disk in run.disks():
                if random.random() > every:
                    continue
                for kind in kinds_at(seed, event):
                    points += 1
                    run.examine(disk, Point(seed, event, kind))
        except _FOUND as error:
            return error
    return None


def is_found(make: Callable[[int], Run], *, every: float = 1.0) -> bool:
    """Tell whether some point fails."""
    return first_failure(make, every=every) is not None


def nothing(*args: Any, **options: Any) -> None:
    """Stand for what was forgotten."""
    del args, options
