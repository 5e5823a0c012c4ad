"""Search for planted faults, which the crash tests must find within some thousand points."""

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
# Errors by which the code or the checks report a fault.
_FOUND = (AssertionError, KafkaError, StartError, OSError)


def first_failure(
    make: Callable[[int], Run], *, every: float = 1.0, enough: int = _ENOUGH
) -> Exception | None:
    """Return the first failure of a point, or None.

    Args:
        make: Returns the run of a seed.
        every: Share of a run's events to examine.
        enough: Maximum number of points.
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
    return first_failure(make, every=every) is not None


def nothing(*args: Any, **options: Any) -> None:
    """Do nothing, in place of an omitted step."""
    del args, options
