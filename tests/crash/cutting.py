"""Crashes of a recorded run at its events.

A point is an event and a kind of crash. Its random choices come from the run's seed, the event and
the kind, so that each point can be repeated alone.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, NamedTuple

from tests.simulation.machine.crash_states import POWER_LOSSES, CrashKind, crash
from tests.simulation.machine.disk import Disk, Write

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.simulation.machine.disk import Event


class Point(NamedTuple):
    seed: int  # of the run
    event: int  # the first that does not happen, or only in part
    kind: CrashKind

    @property
    def random(self) -> Random:
        return Random(f"{self.seed} {self.event} {self.kind.name}")

    def __str__(self) -> str:
        return f"{self.seed}:{self.event}:{self.kind.name}"

    @classmethod
    def parse(cls, text: str) -> Point:
        seed, event, kind = text.split(":")
        return cls(int(seed), int(event), CrashKind[kind])


def disks_at_events(events: Sequence[Event], first: int) -> Iterator[tuple[int, Disk]]:
    """Yield (event number, disk just before the event), and the final disk.

    All are the same changing disk; copy it to keep a state.
    """
    disk = Disk()
    for number, event in enumerate(events):
        if number >= first:
            yield number, disk
        disk.apply(event)
    yield len(events), disk


def disk_after(disk: Disk, event: Event | None, point: Point, random: Random) -> Disk:
    """Return the disk after a crash; a process killed in a write has done a part of it."""
    after = crash(disk, point.kind, random)
    if point.kind is CrashKind.KILL and isinstance(event, Write):
        part = random.randrange(len(event.data) + 1)
        if part:
            after.apply(event._replace(data=event.data[:part]))
    return after


def kinds_at(seed: int, event: int) -> list[CrashKind]:
    """Return the kinds of crash at an event: a kill, and one or two power losses."""
    random = Random(f"{seed} {event}")
    return [CrashKind.KILL, *random.sample(POWER_LOSSES, random.choice([1, 2]))]


def shown(event: Event | None) -> str:
    if event is None:
        return "the end"
    text = repr(event)
    return text if len(text) < 120 else f"{text[:120]}…"
