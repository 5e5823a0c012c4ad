"""Compaction on a disk without room."""

from __future__ import annotations

from tests.support.storage.failing_files import FailingFiles
from tests.unit.wirebroker.maintenance.test_compactor import cleaned_files, fill, kit, offsets
from wirebroker.maintenance.compaction_child import run_here


async def test_full_disk_at_any_call_only_delays_compaction(tmp_path):
    disk = FailingFiles()
    async with kit(tmp_path, run=run_here(disk), files=disk) as k:
        number = 0
        while number == 0 or disk.refused:
            t = await k.topic(f"t-{number}")
            fill(t)
            disk.fill(after_changes=number)
            await k.compact()
            disk.free()
            assert t.directory.is_online, number
            assert offsets(t)[-2:] == [5, 6], number
            await k.compact()
            assert offsets(t) == [5, 6], number
            assert cleaned_files(t) == [], number
            number += 1
        assert not k.compactor.uncleanable
    assert number > 5
