"""A data directory that is moved, deleted or replaced goes offline."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.support.brokers.servers import broker_of, client_of, running
from tests.support.protocol.requests import create_topic, produce
from tests.support.records.batches import batch
from tests.support.tools.waiting import until
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def move(path: Path) -> None:
    path.rename(path.with_name("moved"))


def replace(path: Path) -> None:
    shutil.copytree(path, path.with_name("copy"))
    move(path)
    path.with_name("copy").rename(path)


def delete(path: Path) -> None:
    shutil.rmtree(path)


@pytest.mark.parametrize("leave", [move, replace, delete])
async def test_directory_moved_from_its_path_goes_offline(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, leave: Callable[[Path], None]
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    async with running(first, second) as server, client_of(server) as client:
        for number in range(4):
            await create_topic(client, f"t{number}")
        directories = {
            directory.path: directory for directory in broker_of(server).replicas.directories
        }
        lost = directories[str(second)]
        topics = sorted(partition.topic for partition in lost.partitions)
        assert topics
        assert len(topics) < 4
        leave(second)
        # The periodic check runs every second.
        await until(lambda: not lost.is_online)
        assert directories[str(first)].is_online
        for number in range(4):
            result = await produce(client, f"t{number}", batch(b"value"))
            is_lost = f"t{number}" in topics
            assert (result.error_code == ErrorCode.NONE) is not is_lost
    assert f"the data directory {second} is offline until a restart" in caplog.text
    assert "it was moved, deleted or replaced while the broker uses it" in caplog.text


async def test_stop_reports_that_the_only_directory_was_moved(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = tmp_path / "data"
    async with running(data) as server, client_of(server) as client:
        await create_topic(client, "t")
        move(data)
    assert "was not closed cleanly" in caplog.text or "is offline until a restart" in caplog.text
    assert not (tmp_path / "moved" / ".kafka_cleanshutdown").exists()


async def test_removed_lock_file_changes_nothing(tmp_path: Path) -> None:
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t")
        (tmp_path / ".lock").unlink()
        for directory in broker_of(server).replicas.directories:
            directory.files.check_in_place()
        assert (await produce(client, "t", batch(b"value"))).error_code == ErrorCode.NONE
