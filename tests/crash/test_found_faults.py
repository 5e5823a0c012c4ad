"""Regression tests of faults that the crash tests found, each by the shortest path."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.crash.log_workload import LogWorkload
from tests.crash.store import DATA, Store, new_disk
from tests.simulation.machine.disk import Write, change_data
from tests.simulation.machine.loop import KilledError
from tests.support.records.batches import batch
from tests.support.records.clocks import HandClock
from wirebroker.config import Config

if TYPE_CHECKING:
    from wirebroker.storage.log.log import Log


@pytest.fixture
def workload() -> LogWorkload:
    return LogWorkload(1)


def reopened(workload: LogWorkload, *, dies_at_write: int | None = None) -> Store:
    return Store(
        workload.disk, workload.settings, clock=workload.clock, dies_at_write=dies_at_write
    )


def test_an_abort_after_the_first_flush_survives_a_power_loss(workload) -> None:
    log = workload.store.logs[0]
    workload.append_in_transaction(0, log)
    workload.flush(0, log)
    workload.random.random = lambda: 0.9  # aborts
    workload.end_transaction(0, log)
    assert len(log.aborted_transactions(0, log.log_end_offset)) == 1
    workload.flush(0, log)
    workload.store.checkpoint()
    workload.disk.lose_power()
    recovered = reopened(workload).logs[0]
    assert recovered.log_end_offset == log.log_end_offset
    assert len(recovered.aborted_transactions(0, recovered.log_end_offset)) == 1


def test_a_clean_marker_does_not_come_back_after_a_kill_and_a_power_loss(workload) -> None:
    workload.store.stop()
    with pytest.raises(KilledError):
        reopened(workload, dies_at_write=2)  # between the marker's removal and its sync
    store = reopened(workload)
    assert not store.was_clean
    workload.append(0, store.logs[0])
    workload.disk.lose_power()
    assert not reopened(workload).was_clean


def test_a_topic_id_is_on_the_disk_as_soon_as_records_are(workload) -> None:
    log = workload.store.logs[0]
    workload.append(0, log)
    workload.flush(0, log)
    workload.disk.lose_power()
    content = workload.disk.files_in("/data/t-0")["partition.metadata"]
    assert b"topic_id: " in content


def test_truncated_batches_do_not_reappear_after_newer_ones() -> None:
    disk, clock = new_disk(), HandClock()
    settings = Config({"log.dirs": DATA}).topic_settings({})

    def opened() -> Store:
        return Store(disk, settings, clock=clock)

    def append(log: Log, value: bytes, leader_epoch: int) -> int:
        records = bytearray(batch(value, timestamp_ms=clock.now_ms()))
        log.append_as_leader(memoryview(records), leader_epoch=leader_epoch, now_ms=clock.now_ms())
        return len(records)

    store = opened()
    log = store.logs[0]
    size, *_ = [append(log, b"old %d" % number, 0) for number in range(4)]
    store.flush(log, log.flush_target())
    inode = disk.inode("/data/t-0/00000000000000000000.log")
    # A power loss: nothing is left of the second batch, but the later ones remain.
    inode.data[size : 2 * size] = bytes(size)
    inode.synced = bytes(inode.data)
    log = opened().logs[0]
    assert log.log_end_offset == 1
    for number in (1, 2):
        assert append(log, b"new %d" % number, 2) == size
    # A second power loss: of the unsynced data only the first new batch remains.
    surviving_write = next(event for event in inode.pending if isinstance(event, Write))
    disk.lose_power()
    change_data(inode.data, surviving_write)
    assert opened().logs[0].log_end_offset == 2
