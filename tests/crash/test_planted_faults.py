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
from wirebroker.storage.recovery import log_recovery


@pytest.mark.parametrize("make", [LogRun, CompactionRun, CopyRun])
def test_nothing_is_found_where_nothing_is_planted(make: Any) -> None:
    """Without this the tests below would show nothing."""
    assert first_failure(make, enough=1_000) is None


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        pytest.param(FlushTarget, "sync", id="a flush that does not wait for the disk"),
        pytest.param(DataDirectory, "sync_names", id="the directory's own name is not synced"),
        pytest.param(
            LogDirectory, "remove_clean_shutdown_marker", id="the clean marker stays where it is"
        ),
        pytest.param(SparseIndex, "replace_entries", id="indexes are not built anew"),
        pytest.param(log_recovery, "replay_producers", id="producers are not replayed"),
        pytest.param(
            log_recovery._Recovery, "_mend_epochs", id="epochs that were torn are not mended"
        ),
        pytest.param(log_recovery._Recovery, "_drop", id="segments behind a cut stay"),
    ],
)
def test_what_is_left_out_is_missed(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
    monkeypatch.setattr(owner, name, nothing)
    assert is_found(LogRun)


def test_a_flush_that_forgets_the_directory_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = FlushTarget.sync
    monkeypatch.setattr(
        FlushTarget, "sync", lambda self: whole(self._replace(is_directory_dirty=False))
    )
    assert is_found(LogRun)


def test_a_bad_batch_that_is_kept_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_recovery, "crc32c", lambda data: mock.ANY)
    assert is_found(LogRun)


def test_a_file_of_epochs_that_is_believed_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trust leader-epoch-checkpoint although the batches have a later epoch."""
    monkeypatch.setattr(StoredEpochs, "latest", lambda _: -1)
    assert is_found(LogRun)


@pytest.mark.parametrize("make", [CompactionRun, CopyRun])  # the others write no gaps
def test_a_gap_that_ends_a_log_is_found(monkeypatch: pytest.MonkeyPatch, make: Any) -> None:
    """Delete what follows a gap between segments, unless the topic is currently compacted."""
    whole = log_recovery._Recovery._recover_segment

    def recover(recovery: Any, segment: Any, start: Any, *, is_active: bool) -> tuple[int, bool]:
        end, was_cut = whole(recovery, segment, start, is_active=is_active)
        later = recovery._log.segments.since(end)
        has_gap = (
            not is_active and later[-1].base_offset > end not in recovery._log.segments.base_offsets
        )
        return end, was_cut or (has_gap and not recovery._log.settings.is_compacted)

    monkeypatch.setattr(log_recovery._Recovery, "_recover_segment", recover)
    assert is_found(make)


def test_a_swap_that_sets_the_old_segments_aside_first_is_found(
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


def test_a_swap_that_no_start_completes_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_recovery, "recover_swap", nothing)
    assert is_found(CompactionRun)


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        pytest.param(FlushTarget, "sync", id="records are answered before they are synced"),
        pytest.param(MetadataStore, "sync", id="metadata is answered before it is synced"),
        pytest.param(SimulatedFiles, "sync_directory", id="no directory is synced"),
    ],
)
def test_what_a_broker_leaves_out_is_missed(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str
) -> None:
    monkeypatch.setattr(owner, name, nothing)
    assert is_found(BrokerRun, every=0.05)
