"""Checks of a run of logs at one point: the start after the crash, and further use."""

from __future__ import annotations

from bisect import bisect_right
from random import Random
from typing import TYPE_CHECKING

from tests.crash.cutting import disk_after, disks_at_events, shown
from tests.crash.history import Facts, end_of, promise
from tests.crash.log_checks import check_log
from tests.crash.log_workload import PARTITIONS, LogWorkload
from tests.crash.store import Store
from tests.simulation.machine.crash_states import POWER_LOSSES, CrashKind, age_epochs, crash
from tests.simulation.machine.disk import Write
from tests.simulation.machine.loop import KilledError
from tests.support.records.clocks import HandClock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.crash.cutting import Point
    from tests.crash.log_workload import Moment
    from tests.simulation.machine.disk import Disk, Event
    from wirebroker.config.rows.topic import TopicSettings
    from wirebroker.storage.log.log import Log

# Maximum number of writes before a start is killed as well.
_MOST_WRITES_OF_A_START = 25
# Share of points whose leader epoch files are missing or older than their logs.
_AGED_EPOCHS = 0.1


class LogRun:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.workload = self._new_workload()
        self.workload.run()
        assert self.workload.disk.events is not None
        self.events = self.workload.disk.events
        self._moments = self.workload.moments
        self._counts = [moment.events for moment in self._moments]

    def disks(self) -> Iterator[tuple[int, Disk]]:
        """Yield the disk at every event from the first start on."""
        return disks_at_events(self.events, self._counts[0])

    def examine(self, disk: Disk, point: Point) -> None:
        """Crash at a point, restart and check everything; raise on a violated guarantee."""
        event = self.events[point.event] if point.event < len(self.events) else None
        # A write interrupted by kill -9 is partly done: its step has begun.
        has_begun = point.kind is CrashKind.KILL and isinstance(event, Write)
        before, after = self._around(point.event, has_begun=has_begun)
        try:
            self._examine(disk, point, before, after, event)
        except Exception as error:  # raised again with the point
            error.add_note(
                f"point {point}: {point.kind}, cut before event {point.event} of "
                f"{len(self.events)} ({shown(event)}), between {before.step!r} and {after.step!r}"
            )
            raise

    def _around(self, event: int, *, has_begun: bool) -> tuple[Moment, Moment]:
        index = bisect_right(self._counts, event)
        before = self._moments[index - 1]
        is_between = before.events == event and not has_begun
        return before, before if is_between else self._moments[min(index, len(self._moments) - 1)]

    def _examine(
        self, disk: Disk, point: Point, before: Moment, after: Moment, event: Event | None
    ) -> None:
        random = point.random
        loses_power = point.kind.loses_power
        disk = disk_after(disk, event, point, random)
        # A separate generator, so that other points keep their random choices.
        of_epochs = Random(f"{point} epochs")
        if of_epochs.random() < _AGED_EPOCHS:
            age_epochs(disk, of_epochs)
        store = None
        if random.random() < 0.25:
            store = self._start(disk, dies_at_write=random.randint(1, _MOST_WRITES_OF_A_START))
            if store is None:
                second = random.choice([CrashKind.KILL, *POWER_LOSSES])
                loses_power = loses_power or second.loses_power
                disk = crash(disk, second, random)
        store = store or self._start(disk)
        assert store is not None
        facts: dict[int, Facts] = {}
        for partition, log in store.logs.items():
            facts[partition] = self._check(
                log,
                before.facts[partition],
                after.facts[partition],
                random,
                loses_power=loses_power,
            )
        self._go_on(store, facts, random)

    def _new_workload(self) -> LogWorkload:
        return LogWorkload(self.seed)

    def _check(
        self, log: Log, before: Facts, after: Facts, random: Random, *, loses_power: bool
    ) -> Facts:
        """Check a log against two moments; return its current state."""
        promised = promise(before, after, loses_power=loses_power)
        stored = check_log(log, promised, random)
        older = [batch for batch in promised.older if end_of(batch) <= _first(log)]
        return Facts(
            (*older, *stored),
            log.log_start_offset,
            log.recovery_point,
            deleted_to=promised.known_from,
            possible=frozenset(stored),
        )

    def _settings_of_start(self, disk: Disk) -> TopicSettings:
        del disk
        return self.workload.settings

    def _start(self, disk: Disk, *, dies_at_write: int | None = None) -> Store | None:
        clock = HandClock()
        clock.passed_ms = self.workload.clock.passed_ms
        try:
            store = Store(
                disk,
                self._settings_of_start(disk),
                clock=clock,
                partitions=PARTITIONS,
                dies_at_write=dies_at_write,
            )
        except KilledError:
            return None
        store.files.dies_at_write = None
        return store

    def _go_on(self, store: Store, facts: dict[int, Facts], random: Random) -> None:
        """Append and flush, then stop, die or lose power; check that no flushed record is lost."""
        work = self.workload.continued(store, facts, random)
        for _ in range(random.randrange(3)):
            work.take(work.step_after_crash())
        ends = {partition: log.log_end_offset for partition, log in store.logs.items()}
        ending = random.choice(["stop", "die", "flush and lose power"])
        kind = CrashKind.KILL
        if ending == "stop":
            store.stop()
            work.all_is_flushed()
            kind = random.choice(list(CrashKind))
        elif ending == "flush and lose power":
            for partition in PARTITIONS:
                work.flush(partition, store.logs[partition])
            if random.random() < 0.5:
                store.checkpoint()
            kind = random.choice(POWER_LOSSES)
        restarted = self._start(crash(store.disk, kind, random))
        assert restarted is not None
        for partition, log in restarted.logs.items():
            now = work.facts[partition]
            if kind is CrashKind.KILL or ending == "stop":
                assert log.log_end_offset == ends[partition]
            self._check(log, now, now, random, loses_power=kind.loses_power)


def _first(log: Log) -> int:
    return log.segments[0].base_offset
