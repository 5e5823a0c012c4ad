"""Compaction removes nothing that a replay of the log needs (requirement R17).

Random keys, tombstones, transactions, codecs, memory and horizons: a reader that begins at any
offset finds the same last value of every key.
"""

from __future__ import annotations

import contextlib
from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.crash.cutting import disks_at_events
from tests.property.compaction_workload import RETENTION_MS, Workload, open_log
from tests.simulation.machine.crash_states import CrashKind, crash
from tests.simulation.machine.loop import KilledError
from tests.simulation.machine.simulated_files import SimulatedFiles
from tests.support.harness.budget import Budget
from tests.support.storage.compaction import compact
from wirebroker.storage.compaction.segment_swap import recover_swap

if TYPE_CHECKING:
    from tests.simulation.machine.disk import Disk
    from wirebroker.storage.log.log import Log

STEPS = 120


@pytest.fixture
def budget(request: pytest.FixtureRequest) -> Budget:
    return Budget(request.config, seconds=4.0)


def test_a_compacted_log_replays_to_the_same_map(budget):
    for number in budget.rounds():
        work = Workload(Random(f"{budget.seed} {number}"))
        for _ in range(STEPS):
            work.step()
            if work.random.random() < 0.04:
                work.compact()
                work.check()
                if work.random.random() < 0.2:
                    work.clock.passed_ms += RETENTION_MS


def test_a_further_compaction_changes_nothing(budget):
    for number in budget.rounds():
        work = Workload(Random(f"again {budget.seed} {number}"))
        for _ in range(STEPS):
            work.step()
        # The second one sets the markers' horizon, because the first still found their data.
        for _ in range(2):
            compact(work.log, work.files, 0, now_ms=work.clock.now_ms())
        before = work.everything()
        compact(work.log, work.files, 0, now_ms=work.clock.now_ms())
        assert work.everything() == before
        work.check()


def producers_of(log: Log) -> dict[int, tuple[int, int, int]]:
    return {
        producer_id: (entry.producer_epoch, entry.last_sequence, entry.current_txn_first_offset)
        for producer_id, entry in log.producer_state.producers.items()
    }


def test_producer_state_is_rebuilt_from_the_compacted_log_alone(budget):
    for number in budget.rounds():
        work = Workload(Random(f"producers {budget.seed} {number}"))
        for _ in range(STEPS):
            work.step()
        work.end_all_transactions()
        for _ in range(3):
            work.log.roll(now_ms=work.clock.now_ms())
            work.compact()
            work.clock.passed_ms += RETENTION_MS
            work.append()
            work.end_all_transactions()
        before = producers_of(work.log)
        work.log.close(clean=False)
        for name in work.files.list_directory(work.log.directory):
            if name.endswith(".snapshot"):
                work.files.unlink(f"{work.log.directory}/{name}")
        work.log = open_log(work.files)
        assert producers_of(work.log) == before
        work.check()


def left_by_a_start_that_dies(disk: Disk, work: Workload) -> Disk:
    files = SimulatedFiles(disk, work.clock, lambda: None)
    files.dies_at_write = work.random.randrange(1, 12)
    with contextlib.suppress(KilledError):
        recover_swap(files, work.log.directory, files.list_directory(work.log.directory))
    return crash(disk, work.random.choice(list(CrashKind)), work.random)


def test_a_crash_anywhere_in_a_compaction_loses_nothing(budget):
    for number in budget.rounds():
        work = Workload(Random(f"crash {budget.seed} {number}"), is_recorded=True)
        for _ in range(STEPS // 2):
            work.step()
        work.end_all_transactions()
        work.compact()
        for _ in range(STEPS // 2):
            work.step()
        work.end_all_transactions()
        work.log.flush()
        end = work.log.log_end_offset
        events = work.disk.events
        assert events is not None
        first = len(events)
        work.compact()
        for cut, disk in disks_at_events(events, first):
            kind = work.random.choice(list(CrashKind))
            crashed_disk = crash(disk, kind, work.random)
            recovery_point = work.random.choice([0, end])
            if work.random.random() < 0.3:
                crashed_disk = left_by_a_start_that_dies(crashed_disk, work)
            files = SimulatedFiles(crashed_disk, work.clock, lambda: None)
            log = open_log(files, recovery_point=recovery_point)
            assert log.log_end_offset == end, f"{number}: cut before event {cut}, {kind}"
            assert not [name for name in files.list_directory(log.directory) if ".swap" in name]
            work.check(log)
            # A later compaction does the interrupted work, with the same result.
            compact(log, files, 0, now_ms=work.clock.now_ms())
            work.check(log)
