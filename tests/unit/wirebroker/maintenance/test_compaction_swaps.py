"""What happens to a log or its disk before the swap of compacted segments."""

from __future__ import annotations

import contextlib
import errno
import os
from typing import TYPE_CHECKING

from tests.support.protocol.requests import delete_topic
from tests.unit.wirebroker.maintenance.compactor_kit import (
    NOW,
    Meanwhile,
    cleaned_files,
    fill,
    kit,
    offsets,
)
from wirebroker.maintenance.compaction_child import (
    run_here,
)
from wirebroker.storage.checkpoints import CLEANER_CHECKPOINT
from wirebroker.storage.files import Files
from wirebroker.storage.log.wall_clocks import ClockReading

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from wirebroker.maintenance.compaction_child import News
    from wirebroker.maintenance.compaction_order import Limits
    from wirebroker.storage.compaction.compaction import CompactionJob


async def test_topic_deleted_during_compaction_is_not_swapped(tmp_path):
    meanwhile = Meanwhile()
    async with kit(tmp_path, run=meanwhile) as k:
        fill(await k.topic("t"))
        (task,) = await k.compactor.start_due()
        await meanwhile.is_written.wait()
        await delete_topic(k.client, "t")
        meanwhile.go_on.set()
        assert not await task
        assert k.compactor.uncleanable == set()
        assert not (tmp_path / CLEANER_CHECKPOINT).exists()


async def test_log_cut_by_retention_during_compaction_is_unchanged(tmp_path):
    meanwhile = Meanwhile()
    async with kit(tmp_path, run=meanwhile) as k:
        t = await k.topic("t", **{"cleanup.policy": "compact,delete"})
        fill(t)
        (task,) = await k.compactor.start_due()
        await meanwhile.is_written.wait()
        t.log.increment_log_start_offset(2)
        assert [s.base_offset for s in t.log.delete_old_segments(ClockReading(NOW))] == [0]
        meanwhile.go_on.set()
        assert not await task
        assert offsets(t) == [2, 3, 4, 5, 6]
        assert cleaned_files(t) == []
        assert await k.compact() == [True]
        assert offsets(t) == [5, 6]


async def test_swap_of_changed_segments_is_undone(tmp_path, monkeypatch):
    async with kit(tmp_path) as k:
        t = await k.topic("t", **{"cleanup.policy": "compact,delete"})
        fill(t)
        sync = Files.sync_directory

        def cut_and_sync(self: Files, path: str) -> None:
            if len(cleaned_files(t)) and t.log.segments[0].base_offset == 0:
                is_swapping = any("swap" in name for name in cleaned_files(t))
                if is_swapping:
                    t.log.increment_log_start_offset(2)
                    t.log.delete_old_segments(ClockReading(NOW))
            sync(self, path)

        monkeypatch.setattr(Files, "sync_directory", cut_and_sync)
        assert await k.compact() == [False]
        assert offsets(t) == [2, 3, 4, 5, 6]
        assert cleaned_files(t) == []


async def test_swap_waits_for_free_file_descriptors(tmp_path, monkeypatch):
    async with kit(tmp_path) as k:
        t = await k.topic("t")
        fill(t)
        sync = Files.sync_directory
        refused: list[str] = []

        def sync_at_the_third_attempt(self: Files, path: str) -> None:
            is_swapping = any("swap" in name for name in cleaned_files(t))
            if is_swapping and len(refused) < 2:
                refused.append(path)
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), path)
            sync(self, path)

        monkeypatch.setattr(Files, "sync_directory", sync_at_the_third_attempt)
        assert await k.compact() == [True]
        assert len(refused) == 2
        assert offsets(t) == [5, 6]
        assert cleaned_files(t) == []


async def test_swap_with_an_unsynced_start_is_undone(tmp_path, monkeypatch):
    """Otherwise the next start would complete it over a log that has changed."""
    async with kit(tmp_path) as k:
        t = await k.topic("t")
        fill(t)
        sync = Files.sync_directory

        def refuse_once(self: Files, path: str) -> None:
            if any("swap" in name for name in cleaned_files(t)):
                monkeypatch.setattr(Files, "sync_directory", sync)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
            sync(self, path)

        monkeypatch.setattr(Files, "sync_directory", refuse_once)
        assert await k.compact() == [False]
        assert cleaned_files(t) == []
        assert offsets(t) == list(range(7))
        assert await k.compact() == [True]
        assert offsets(t) == [5, 6]


async def test_incomplete_output_segment_is_not_swapped_in(tmp_path):
    async def run(job: CompactionJob, limits: Limits) -> AsyncGenerator[News, None]:
        async with contextlib.aclosing(run_here(Files())(job, limits)) as worker:
            async for news in worker:
                (tmp_path / "t-0" / f"{0:020d}.{missing}.cleaned").unlink(missing_ok=True)
                yield news

    for missing in ("log", "index", "timeindex"):
        async with kit(tmp_path, run=run) as k:
            t = k.partition("t") if missing != "log" else await k.topic("t")
            if missing == "log":
                fill(t)
            assert await k.compact() == [False]
            assert offsets(t) == list(range(7))
            assert cleaned_files(t) == []
