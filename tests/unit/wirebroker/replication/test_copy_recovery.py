"""A start after an interrupted move: the copy starts again or becomes the log."""

from __future__ import annotations

import asyncio
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.support.brokers.servers import client_of, config_of, running
from tests.support.protocol.requests import append, create_topic
from tests.support.records.batches import batch
from tests.support.tools.waiting import PATIENCE_S, until
from tests.unit.wirebroker.replication.move_kit import (
    SLOW,
    NamesMayFail,
    check,
    copied_so_far,
    data_directory,
    futures,
    held,
    known_place,
    move,
    place,
    started,
)
from wirebroker.broker.server import Server
from wirebroker.codecs.errors import ErrorCode
from wirebroker.config import StartError

if TYPE_CHECKING:
    from pathlib import Path


async def test_move_interrupted_by_a_stop_starts_again(tmp_path: Path) -> None:
    source, target = tmp_path / "one", tmp_path / "two"
    async with asyncio.timeout(PATIENCE_S):
        async with running(source, target, settings=SLOW) as server, client_of(server) as client:
            await started(source, target, client, server, 5)
            assert await move(client, target) == ErrorCode.NONE
            await until(lambda: copied_so_far(server, target))
        copies = futures(target)
        assert len(copies) == 1
        async with running(source, target) as server, client_of(server) as client:
            await until(lambda: place(server) == str(target))
            await check(client, 5)
            await until(lambda: not futures(target))


@pytest.mark.parametrize("is_twice", [False, True])
async def test_complete_copy_left_by_a_kill_becomes_the_log(tmp_path: Path, is_twice: bool) -> None:
    source, target = tmp_path / "one", tmp_path / "two"
    async with asyncio.timeout(PATIENCE_S):
        async with running(source, target) as server, client_of(server) as client:
            await started(source, target, client, server, 5)
            await move(client, target)
            await until(lambda: place(server) == str(target))
        if is_twice:
            shutil.copytree(target / "t-0", source / "t-0", dirs_exist_ok=True)
        else:
            (target / "t-0").rename(target / f"t-0.{'0' * 32}-future")
        async with running(source, target) as server, client_of(server) as client:
            assert place(server) == str(target)
            await check(client, 5)
        assert len(list(source.glob("t-0.*-stray"))) == is_twice


@pytest.mark.parametrize("is_twice", [False, True])
async def test_disk_failing_during_copy_recovery_is_offline_and_the_other_serves(
    tmp_path: Path, is_twice: bool
) -> None:
    source, target = tmp_path / "one", tmp_path / "two"
    settings = {"metadata.log.dir": str(tmp_path / "metadata")}
    disk = NamesMayFail()
    async with asyncio.timeout(PATIENCE_S):
        async with (
            running(source, target, settings=settings) as server,
            client_of(server) as client,
        ):
            await started(source, target, client, server, 5)
            await move(client, target)
            await until(lambda: place(server) == str(target))
        if is_twice:
            shutil.copytree(target / "t-0", source / "t-0", dirs_exist_ok=True)
        else:
            (target / "t-0").rename(target / f"t-0.{'0' * 32}-future")
        disk.fail((source if is_twice else target) / "t-", "rename")
        async with (
            running(source, target, settings=settings, files=disk) as server,
            client_of(server) as client,
        ):
            assert data_directory(server, source).is_online != is_twice
            assert data_directory(server, target).is_online == is_twice
            assert place(server) == str(target)
            if is_twice:
                await check(client, 5)
            assert (source / "t-0").exists() == is_twice, "it is not created again"
        disk.broken.clear()
        async with (
            running(source, target, settings=settings) as server,
            client_of(server) as client,
        ):
            assert place(server) == str(target)
            await check(client, 5)


@pytest.mark.parametrize("failing", ["t-0", "u-0"])  # before and after the log exists
async def test_promoted_copy_becomes_the_log_if_the_source_disk_fails_to_load(
    tmp_path: Path, failing: str
) -> None:
    source, target = tmp_path / "one", tmp_path / "two"
    settings = {"metadata.log.dir": str(tmp_path / "metadata")}
    disk = NamesMayFail()
    async with asyncio.timeout(PATIENCE_S):
        async with (
            running(source, target, settings=settings) as server,
            client_of(server) as client,
        ):
            await started(source, target, client, server, 5)
            await move(client, source, topic="u")
            await create_topic(client, "u", 1)
            assert await append(client, "u", batch(b"u")) == 0
            await move(client, target)
            await until(lambda: place(server) == str(target))
            await until(lambda: known_place(server) == held(server).directory.directory_id)
        shutil.copytree(target / "t-0", source / "t-0", dirs_exist_ok=True)
        (target / "t-0").rename(target / f"t-0.{'0' * 32}-future")
        for name in (".kafka_cleanshutdown", "recovery-point-offset-checkpoint"):
            (source / name).unlink()
        disk.fail(source / failing, "read")
        async with (
            running(source, target, settings=settings, files=disk) as server,
            client_of(server) as client,
        ):
            assert not data_directory(server, source).is_online
            assert place(server) == str(target)
            await check(client, 5)
            assert await append(client, "t", batch(b"5")) == 5
            assert not futures(target)


async def test_copy_recovery_requires_the_disk_of_the_metadata_log(
    tmp_path: Path,
) -> None:
    source, target = tmp_path / "one", tmp_path / "two"
    disk = NamesMayFail()
    async with asyncio.timeout(PATIENCE_S):
        async with running(source, target) as server, client_of(server) as client:
            await started(source, target, client, server, 5)
            await move(client, target)
            await until(lambda: place(server) == str(target))
        shutil.copytree(target / "t-0", source / "t-0", dirs_exist_ok=True)
        disk.fail(source / "t-", "rename")
        with pytest.raises(StartError, match=f"the data directory {source} cannot be read"):
            await Server(config_of(source, target), files=disk).start()


@pytest.mark.parametrize("is_replaced", [True, False])
async def test_missing_source_disk_does_not_promote_a_copy(
    tmp_path: Path, is_replaced: bool
) -> None:
    source, target = tmp_path / "one", tmp_path / "two"
    settings = {**SLOW, "metadata.log.dir": str(tmp_path / "metadata")}
    async with asyncio.timeout(PATIENCE_S):
        async with (
            running(source, target, settings=settings) as server,
            client_of(server) as client,
        ):
            await started(source, target, client, server, 5)
            await until(lambda: known_place(server) == held(server).directory.directory_id)
            assert await move(client, target) == ErrorCode.NONE
            await until(lambda: copied_so_far(server, target))
        copies = futures(target)
        away = source.rename(tmp_path / "away")
        source.mkdir()
        if not is_replaced:
            (source / "meta.properties").mkdir()  # unreadable
        async with (
            running(source, target, settings=settings) as server,
            client_of(server) as client,
        ):
            if is_replaced:
                await check(client, 0)
                assert len(list(target.glob("t-0.*-stray"))) == 1  # a new copy may have begun
                return
            assert not held(server).directory.is_online
            assert futures(target) == copies
        shutil.rmtree(source)
        away.rename(source)
        del settings["replica.alter.log.dirs.io.max.bytes.per.second"]
        async with (
            running(source, target, settings=settings) as server,
            client_of(server) as client,
        ):
            await until(lambda: place(server) == str(target))
            await check(client, 5)
