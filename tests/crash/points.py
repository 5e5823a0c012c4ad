"""Examination of the points of successive runs, up to a given number."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Protocol

from tests.crash.cutting import Point, kinds_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pytest

    from tests.simulation.machine.disk import Disk

# Default of --crash-points.
_USUAL_POINTS = 1_000


class Run(Protocol):
    seed: int

    def disks(self) -> Iterator[tuple[int, Disk]]: ...

    def examine(self, disk: Disk, point: Point) -> None: ...


def examine_points(
    request: pytest.FixtureRequest,
    name: str,
    make: Callable[[int], Run],
    *,
    share: float,
    every: float = 1.0,
) -> str:
    """Examine the points of as many runs as necessary, or the one that --crash-at names.

    Args:
        request: The test's request.
        name: The kind of run, with which its points begin.
        make: Returns the run of a seed.
        share: Share of the requested number of points.
        every: Share of a run's events to examine.

    Returns:
        A summary line.
    """
    options = request.config.option
    if options.crash_at is not None:
        kind, _, text = options.crash_at.partition(":")
        return _examine_one(make, Point.parse(text)) if kind == name else f"{name}: not asked for"
    total = options.crash_points or int(_USUAL_POINTS * options.budget_scale)
    target_count = max(1, int(total * share))
    kinds: Counter[str] = Counter()
    seed = first_seed = int(options.seed)
    while kinds.total() < target_count:
        run = make(seed)
        random = Random(seed)
        for event, disk in run.disks():
            if kinds.total() >= target_count:
                break
            if random.random() < every:
                for kind in kinds_at(seed, event):
                    examine(name, run, disk, Point(seed, event, kind))
                    kinds[kind.name] += 1
        seed += 1
    return f"{name}: seeds {first_seed} to {seed - 1}, {kinds.total():,} points: {dict(kinds)}"


def examine(name: str, run: Run, disk: Disk, point: Point) -> None:
    """Examine one point; a failure says how to repeat it."""
    try:
        run.examine(disk, point)
    except Exception as error:  # raised again with the point
        error.add_note(f"repeat it: pytest tests/crash --crash-at {name}:{point}")
        raise


def _examine_one(make: Callable[[int], Run], point: Point) -> str:
    run = make(point.seed)
    for event, disk in run.disks():
        if event == point.event:
            run.examine(disk, point)
    return f"{point} holds"
