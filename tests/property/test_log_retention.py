"""Random appends, retention, deletions, truncations, stops and kills of one log.

After each step the log holds, byte for byte and without gaps, the newest of all appended batches,
from the segment with its start offset on. Retention deletes nothing above the high watermark, and
leaves nothing that is too old or too large. A clean stop changes nothing; a kill during the
renames restores at most the segments that were not renamed yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tests.simulation.machine.disk import Disk
from tests.simulation.machine.simulated_files import SimulatedFiles
from tests.support.harness.budget import SharedBudget
from tests.support.records.clocks import HandClock
from wirebroker.codecs.records.batch import build_batch, iterate_batches
from wirebroker.config.rows.topic import TopicSettings
from wirebroker.storage.log.log import Log
from wirebroker.storage.log.removal import set_aside_segment
from wirebroker.storage.log.retention import MOST_SEGMENTS
from wirebroker.storage.log.wall_clocks import WallClocks
from wirebroker.storage.recovery.log_recovery import load_log

if TYPE_CHECKING:
    from random import Random

    import pytest

    from wirebroker.storage.log.segment.segment import Segment

DIRECTORY = "/log"


class Appended(NamedTuple):
    base_offset: int
    next_offset: int
    data: bytes


class Workload:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.clock = HandClock()
        self.clocks = WallClocks(self.clock.now_ms(), 0.0)
        self.disk = Disk()
        self.files = SimulatedFiles(self.disk, self.clock, lambda: None)
        self.files.make_directory(DIRECTORY)
        self.settings = TopicSettings(
            segment_bytes=random.choice([320, 900]),
            retention_ms=random.choice([-1, 1_000, 5_000]),
            retention_bytes=random.choice([-1, 0, 300, 2_000]),
            cleanup_policy=random.choice([("delete",), ("delete",), ("compact",), ()]),
        )
        self.batches: list[Appended] = []
        # The log start offset in the checkpoint, which counts after a kill.
        self.start_written = 0
        self.removed: list[Segment] = []
        self.log = self.open(clean=False)

    def open(self, *, clean: bool) -> Log:
        log = Log(
            DIRECTORY,
            self.files,
            topic="t",
            partition=0,
            topic_id=bytes(16),
            settings=self.settings,
        )
        load_log(
            log,
            recovery_point=self.log.recovery_point if clean else 0,
            clean=clean,
            now_ms=self.clock.now_ms(),
            log_start_offset=self.start_written,
        )
        log.set_high_watermark(log.log_end_offset)
        return log

    def step(self) -> None:
        steps = (self.append, self.append, self.append, self.retain, self.retain)
        rare = (self.delete_records, self.truncate, self.stop, self.kill, self.wait, self.lag)
        self.random.choice(steps if self.random.random() < 0.7 else rare)()

    def append(self) -> None:
        log = self.log
        timestamp_ms = self.clock.now_ms() - self.random.choice([0, 0, 500, 3_000])
        count = self.random.randrange(1, 4)
        records = [(b"k", b"v" * self.random.randrange(60), ())] * count
        data = bytearray(build_batch(records, timestamp_ms=timestamp_ms))
        view = memoryview(data)
        base_offset = log.log_end_offset
        log.append_as_leader(view, leader_epoch=0, now_ms=self.clock.now_ms())
        self.batches.append(Appended(base_offset, log.log_end_offset, bytes(data)))
        log.set_high_watermark(log.log_end_offset)

    def lag(self) -> None:
        """Let the high watermark lag once, and apply retention."""
        self.append()
        log = self.log
        lag = self.random.randrange(log.log_end_offset - log.log_start_offset + 1)
        # The high watermark decreases only on a new leader.
        log.high_watermark = log.log_end_offset - lag
        self.retain()
        log.set_high_watermark(log.log_end_offset)

    def wait(self) -> None:
        self.clock.passed_ms += self.random.randrange(3_000)
        self.clock.jumped_ms += self.random.choice([0, 0, 10**10, -(10**10)])

    def retain(self) -> None:
        log = self.log
        before = log.segments.base_offsets
        reading = self.clocks.moment(self.clock.now_ms(), self.clock.monotonic())
        removed = log.delete_old_segments(reading)
        assert [segment.base_offset for segment in removed] == before[: len(removed)]
        assert log.log_start_offset <= log.high_watermark
        for segment in removed:
            set_aside_segment(log, segment)
            assert segment.base_offset not in log.producer_state.snapshots.offsets
        self.removed += removed
        if len(removed) < MOST_SEGMENTS and len(log.segments) > 1:
            first = log.segments[0]
            if self.settings.is_deleted_by_retention:
                self.assert_wanted(first)
        if self.random.random() < 0.5:
            for segment in self.removed:
                segment.remove()
            self.removed.clear()

    def assert_wanted(self, first: Segment) -> None:
        log, settings = self.log, self.settings
        if log.segments[1].base_offset > log.high_watermark:
            return
        assert log.segments[1].base_offset > log.log_start_offset
        if settings.retention_bytes >= 0:
            assert log.size_bytes - first.size < settings.retention_bytes
        if settings.retention_ms >= 0:
            reading = self.clocks.moment(self.clock.now_ms(), self.clock.monotonic())
            age = reading.age_ms(first.largest_timestamp(), kept_ms=settings.retention_ms)
            assert age <= settings.retention_ms

    def delete_records(self) -> None:
        log = self.log
        log.increment_log_start_offset(
            self.random.randint(log.log_start_offset, log.high_watermark)
        )
        self.start_written = log.log_start_offset

    def truncate(self) -> None:
        log = self.log
        offset = self.random.randint(log.log_start_offset, log.log_end_offset)
        log.truncate_to(offset, now_ms=self.clock.now_ms())
        self.batches = [batch for batch in self.batches if batch.next_offset <= log.log_end_offset]
        # Batches are deleted whole.
        end = max([batch.next_offset for batch in self.batches], default=log.log_start_offset)
        if end < log.log_end_offset:
            log.truncate_fully(log.log_end_offset, now_ms=self.clock.now_ms())
            self.batches.clear()
        self.start_written = min(self.start_written, log.log_start_offset)

    def stop(self) -> None:
        before = self.bounds()
        self.log.close(clean=True)
        self.start_written = self.log.log_start_offset
        self.removed.clear()
        self.log = self.open(clean=True)
        assert self.bounds() == before

    def kill(self) -> None:
        log = self.log
        start, end = self.bounds()
        reading = self.clocks.moment(self.clock.now_ms(), self.clock.monotonic())
        removed = log.delete_old_segments(reading)
        reached = self.random.randrange(len(removed) + 1)
        for segment in removed[:reached]:
            set_aside_segment(log, segment)
        lowest_start = (
            removed[reached].base_offset if reached < len(removed) else log.log_start_offset
        )
        self.removed.clear()
        self.log = self.open(clean=False)
        assert min(start, self.start_written) <= self.log.log_start_offset
        assert self.log.log_start_offset <= max(start, log.log_start_offset)
        assert self.log.log_start_offset >= min(lowest_start, self.start_written)
        assert self.log.log_end_offset == end

    def bounds(self) -> tuple[int, int]:
        return self.log.log_start_offset, self.log.log_end_offset

    def check(self) -> None:
        log = self.log
        log.check()
        data = b"".join(segment.log.read_at(0, segment.size) for segment in log.segments)
        first = log.segments[0].base_offset
        expected = [batch for batch in self.batches if batch.base_offset >= first]
        assert data == b"".join(batch.data for batch in expected)
        assert sum(1 for _ in iterate_batches(memoryview(data))) == len(expected)
        if expected:
            assert first <= expected[0].base_offset <= log.log_start_offset
            assert expected[-1].next_offset == log.log_end_offset
        assert first <= log.log_start_offset


def test_retention_keeps_the_newest_batches_without_gaps(pytestconfig: pytest.Config) -> None:
    budget = SharedBudget(pytestconfig, seconds=4)
    for number in budget.rounds():
        workload = Workload(budget.random)
        try:
            for _ in range(60):
                workload.step()
                workload.check()
        except BaseException as error:
            error.add_note(f"seed {budget.seed}, round {number}")
            raise
