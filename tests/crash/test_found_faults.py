"""Faults that the harness has found, each by the shortest way there."""

from __future__ import annotations

import pytest

from tests.crash.log_workload import LogWorkload
from tests.crash.store import Store
from tests.simulation.loop import KilledError


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
    again = reopened(workload).logs[0]
    assert again.log_end_offset == log.log_end_offset
    assert len(again.aborted_transactions(0, again.log_end_offset)) == 1


def test_a_clean_marker_does_not_come_back_after_a_kill_and_a_power_loss(workload) -> None:
    workload.store.stop()
    with pytest.raises(KilledError):
        reopened(workload, dies_at_write=2)  # between the marker's removal and the sync of it
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
