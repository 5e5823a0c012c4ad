"""Cuts a recorded run at its events, lets the disk do its worst, and starts again.

A point is an event of the run and a kind of crash; what is random about it comes from the seed of
the run, the number of the event and the kind, so that each point can be repeated by itself.
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
    """Where a run is cut, and how."""

    seed: int  # of the run
    event: int  # the first one that does not happen, or only in part
    kind: CrashKind

    @property
    def random(self) -> Random:
        """Return what decides about this point."""
        return Random(f"{self.seed} {self.event} {self.kind.name}")

    def __str__(self) -> str:
        return f"{self.seed}:{self.event}:{self.kind.name}"

    @classmethod
    def parse(cls, text: str) -> Point:
        """Read what __str__ writes."""
        seed, event, kind = text.split(":")
        return cls(int(seed), int(event), CrashKind[kind])


def disks_at_events(events: Sequence[Event], first: int) -> Iterator[tuple[int, Disk]]:
    """Yield (number of an event, the disk just before it), the end included.

    It is one disk, which goes on: take a copy of what is to be kept.
    """
    disk = Disk()
    for number, event in enumerate(events):
        if number >= first:
            yield number, disk
        disk.apply(event)
    yield len(events), disk


def disk_after(disk: Disk, event: Event | None, point: Point, random: Random) -> Disk:
    """Return what is left of a disk; a process that is killed in a write has done a part of it."""
    after = crash(disk, point.kind, random)
    if point.kind is CrashKind.KILL and isinstance(event, Write):
        part = random.randrange(len(event.data) + 1)
        if part:
            after.apply(event._replace(data=event.data[:part]))
    return after


def kinds_at(seed: int, event: int) -> list[CrashKind]:
    """Return how a run is cut at an event: killed, and by one or two power losses."""
    random = Random(f"{seed} {event}")
    return [CrashKind.KILL, *random.sample(POWER_LOSSES, random.choice([1, 2]))]


def shown(event: Event | None) -> str:
    """Return an event as text of bearable length."""
    if event is None:
        return "the end"
    text = repr(event)
    return text if len(text) < 120 else f"{text[:120]}…"
