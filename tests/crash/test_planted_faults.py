"""Planted faults of the logs, which the crash tests must find within some hundred points."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest

from tests.crash import compaction_workload
from tests.crash.broker_points import BrokerRun
from tests.crash.compaction_points import CompactionRun
from tests.crash.compaction_workload import CompactionWorkload
from tests.crash.copy_workload import CopyRun
from tests.crash.log_points import LogRun
from tests.crash.planted import first_failure, is_found, nothing
from tests.simulation.machine.simulated_files import SimulatedFiles
from wirebroker.disks.data_directory import DataDirectory
from wirebroker.quorum.log.metadata_store import MetadataStore
from wirebroker.storage.compaction.segment_swap import begin_swap, finish_swap
from wirebroker.storage.log.flush import FlushTarget
from wirebroker.storage.log.index.sparse_index import SparseIndex
from wirebroker.storage.log.segment import segment_recovery
from wirebroker.storage.log.stored_epochs import StoredEpochs
from wirebroker.storage.log_directory import LogDirectory
from wirebroker.storage.recovery import crash_recovery, log_recovery

pytestmark = pytest.mark.nightly


@pytest.mark.parametrize("make", [LogRun, CompactionRun, CopyRun])
def test_no_failure_without_a_planted_fault(make: Any) -> None:
    """Without this the tests below would show nothing."""
    assert first_failure(make, enough=1_000) is None


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        pytest.param(FlushTarget, "sync", id="a flush that does not wait for the disk"),
        pytest.param(DataDirectory, "sync_names", id="the directory's own name is not synced"),
        pytest.param(
            LogDirectory,
            "remove_clean_shutdown_marker",
            id="the clean shutdown marker is not removed",
        ),
        pytest.param(SparseIndex, "replace_entries", id="indexes are not rebuilt"),
        pytest.param(crash_recovery, "replay_producers", id="producers are not replayed"),
        pytest.param(
            crash_recovery.CrashRecovery, "_repair_epochs", id="torn epoch files are not repaired"
        ),
        pytest.param(crash_recovery.CrashRecovery, "_drop", id="segments after a truncation stay"),
    ],
)
def test_detects_skipped_step_of_a_log(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str
) -> None:
    monkeypatch.setattr(owner, name, nothing)
    assert is_found(LogRun)


def test_detects_flush_without_directory_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    original = FlushTarget.sync
    monkeypatch.setattr(
        FlushTarget, "sync", lambda self: original(self._replace(is_directory_dirty=False))
    )
    assert is_found(LogRun)


def test_detects_recovery_that_keeps_a_corrupt_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_recovery, "crc32c", lambda data: mock.ANY)
    assert is_found(LogRun)


def test_detects_recovery_that_trusts_an_old_epoch_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trust leader-epoch-checkpoint although the batches have a later epoch."""
    monkeypatch.setattr(StoredEpochs, "latest", lambda _: -1)
    assert is_found(LogRun)


@pytest.mark.parametrize("make", [CompactionRun, CopyRun])  # the others write no gaps
def test_detects_truncation_at_a_gap_between_segments(
    monkeypatch: pytest.MonkeyPatch, make: Any
) -> None:
    """Delete what follows a gap between segments, unless the topic is currently compacted."""
    original = crash_recovery.CrashRecovery._recover_segment

    def recover(recovery: Any, segment: Any, start: Any, *, is_active: bool) -> tuple[int, bool]:
        end, was_cut = original(recovery, segment, start, is_active=is_active)
        later = recovery._log.segments.since(end)
        has_gap = (
            not is_active and later[-1].base_offset > end not in recovery._log.segments.base_offsets
        )
        return end, was_cut or (has_gap and not recovery._log.settings.is_compacted)

    monkeypatch.setattr(crash_recovery.CrashRecovery, "_recover_segment", recover)
    assert is_found(make)


def test_detects_swap_that_sets_old_segments_aside_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    put_off: list[Any] = []

    def finish(log: Any, files: Any, new: Any) -> None:
        begin_swap(*put_off.pop())
        finish_swap(log, files, new)

    monkeypatch.setattr(CompactionWorkload, "_go_on_meanwhile", nothing)
    monkeypatch.setattr(compaction_workload, "begin_swap", lambda *args: put_off.append(args))
    monkeypatch.setattr(compaction_workload, "finish_swap", finish)
    CompactionRun(1)  # no failure without a crash
    assert is_found(CompactionRun)


def test_detects_swap_that_a_start_does_not_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_recovery, "recover_swap", nothing)
    assert is_found(CompactionRun)


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        pytest.param(FlushTarget, "sync", id="records are acknowledged before they are synced"),
        pytest.param(
            MetadataStore, "sync", id="metadata changes are acknowledged before they are synced"
        ),
        pytest.param(SimulatedFiles, "sync_directory", id="no directory is synced"),
    ],
)
def test_detects_skipped_sync_of_a_broker(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str
) -> None:
    monkeypatch.setattr(owner, name, nothing)
    assert is_found(BrokerRun, every=0.05)
