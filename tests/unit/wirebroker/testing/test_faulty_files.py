"""Files of brokers in test mode do not wait for the disk."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from wirebroker.config.sources.sources import load_config
from wirebroker.storage import files
from wirebroker.testing.test_mode.restartable import RestartableBroker

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


async def test_start_and_reset_do_not_sync_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[object] = []
    monkeypatch.setattr(os, "fsync", waits.append)
    monkeypatch.setattr(files, "sync_data", waits.append)
    config = load_config(
        file=None, environment={}, flags={}, data_directory=str(tmp_path / "data"), port=0
    )
    broker = RestartableBroker(config)
    await broker.start()
    try:
        await broker.reset()
        await broker.crash()
        await broker.begin_again()
    finally:
        await broker.stop()
    assert waits == []
