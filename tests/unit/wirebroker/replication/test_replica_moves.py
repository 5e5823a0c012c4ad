"""Moves of replicas between log directories while the replicas are in use."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.support.brokers.servers import broker_of, client_of, running
from tests.support.protocol.requests import append, fetch
from tests.support.records.batches import batch, values_in
from tests.support.tools.waiting import PATIENCE_S, until
from tests.unit.wirebroker.replication.move_kit import (
    SLOW,
    DiskOfTheMove,
    NamesMayFail,
    NoNameForLogs,
    SlowToMake,
    check,
    copied_so_far,
    data_directory,
    described,
    futures,
    held,
    move,
    place,
    started,
)
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.controller.image.cluster_image import directory_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.protocol.raw_client import RawClient


async def test_replica_is_moved_during_writes_and_stays_moved(tmp_path: Path) -> None:
    source, target = tmp_path / "one", tmp_path / "two"
    settings = {"log.segment.bytes": "1048576", "file.delete.delay.ms": "60000"}
    async with asyncio.timeout(PATIENCE_S):
        async with (
            running(source, target, settings=settings) as server,
            client_of(server) as client,
        ):
            await started(source, target, client, server, 3)
            large = batch(b"x" * 700_000)
            for offset in range(3, 10):
                assert await append(client, "t", large) == offset
            writing = asyncio.create_task(_write_on(client, 10, 60))
            async with client_of(server) as other:
                assert await move(other, target) == ErrorCode.NONE
            await writing
            await until(lambda: place(server) == str(target))
            partition = held(server)
            assert partition.log.log_end_offset == 60
            assert await append(client, "t", batch(b"after")) == 60
            assert not futures(target)
            assert [path.name.endswith("-delete") for path in source.glob("t-0*")] == [True]
            assert {key[0] for key in await described(client)} == {"two"}
            broker = broker_of(server)
            await until(
                lambda: (
                    directory_of(
                        broker.metadata.image.topics["t"].partitions[0],
                        broker.node_id,
                    )
                    == partition.directory.files.directory_id
                )
            )
            stored = b"".join(path.read_bytes() for path in sorted((target / "t-0").glob("*.log")))
            assert len(stored) == partition.log.size_bytes
        async with (
            running(source, target, settings=settings) as server,
            client_of(server) as client,
        ):
            assert place(server) == str(target)
            assert await append(client, "t", batch(b"later")) == 61
            fetched = await fetch(client, "t", 59)
            assert values_in(fetched.records)[1:] == [b"after", b"later"]


async def _write_on(client: RawClient, first: int, end: int) -> None:
    for number in range(first, end):
        assert await append(client, "t", batch(b"%d" % number)) == number


async def test_move_in_progress_is_shown_and_can_be_cancelled(tmp_path: Path) -> None:
    source, target = tmp_path / "one", tmp_path / "two"
    async with (
        asyncio.timeout(PATIENCE_S),
        running(source, target, settings=SLOW) as server,
        client_of(server) as client,
    ):
        await started(source, target, client, server, 5)
        assert await move(client, target) == ErrorCode.NONE
        await until(
            lambda: list(broker_of(server).replica_moves.of(data_directory(server, target)))
        )
        await until(lambda: futures(target))
        assert await move(client, target) == ErrorCode.NONE  # a repetition changes nothing
        size = held(server).log.size_bytes
        await until(lambda: copied_so_far(server, target) == size)
        descriptions = await described(client)
        assert {*descriptions} == {("one", False), ("two", True)}
        assert descriptions["two", True].partition_size == size
        assert await append(client, "t", batch(b"5")) == 5
        assert (await described(client))["two", True].offset_lag > 0
        assert await move(client, source) == ErrorCode.NONE
        await until(lambda: not futures(target))
        assert {*await described(client)} == {("one", False)}
        await check(client, 6)


@pytest.mark.parametrize("lifted", [(0, "300000000"), (1, None)], ids=["raised", "deleted"])
async def test_throttled_move_continues_after_its_rate_is_changed(
    tmp_path: Path, lifted: tuple[int, str | None]
) -> None:
    source, target = tmp_path / "one", tmp_path / "two"
    name, window = SLOW
    async with (
        asyncio.timeout(PATIENCE_S),
        running(source, target, settings={window: SLOW[window]}) as server,
        client_of(server) as client,
    ):
        await started(source, target, client, server, 1)
        large = batch(b"x" * 700_000)
        for offset in range(1, 6):
            assert await append(client, "t", large) == offset
        await set_config(client, name, 0, "1")
        await until(lambda: broker_of(server).replication_quotas.moves.is_set)
        assert await move(client, target) == ErrorCode.NONE
        await until(lambda: copied_so_far(server, target))
        assert place(server) == str(source)
        await set_config(client, name, *lifted)
        await until(lambda: place(server) == str(target))


async def set_config(client: RawClient, name: str, operation: int, value: str | None) -> None:
    config = {"name": name, "config_operation": operation, "value": value}
    resource = {"resource_type": 4, "resource_name": "", "configs": [config]}
    answer = await client.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, {"resources": [resource]})
    assert answer.responses[0].error_code == ErrorCode.NONE


async def test_failed_move_to_an_unwritable_directory_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source, target = tmp_path / "one", tmp_path / "two"
    disk = NamesMayFail()
    async with (
        asyncio.timeout(PATIENCE_S),
        running(source, target, files=disk) as server,
        client_of(server) as client,
    ):
        await started(source, target, client, server, 5)
        for kind in ("write", "rename"):
            disk.fail(target / "t-", kind)
            caplog.clear()
            assert await move(client, target) == ErrorCode.NONE
            await until(lambda: "cannot move t-0" in caplog.text)
            await until(lambda: not futures(target))
            disk.broken.clear()
        await check(client, 5)
        assert place(server) == str(source)
        assert await append(client, "t", batch(b"5")) == 5


async def test_swap_that_cannot_be_undone_is_completed_at_the_next_start(
    tmp_path: Path,
) -> None:
    source, target = tmp_path / "one", tmp_path / "two"
    disk = NoNameForLogs()
    async with asyncio.timeout(PATIENCE_S):
        async with running(source, target, files=disk) as server, client_of(server) as client:
            await started(source, target, client, server, 5)
            assert await move(client, target) == ErrorCode.NONE
            first, second = data_directory(server, source), data_directory(server, target)
            await until(lambda: not (first.is_online or second.is_online))
            assert len(futures(target)) == 1
            assert not (source / "t-0").exists()
        async with running(source, target) as server, client_of(server) as client:
            assert place(server) == str(target)
            await check(client, 5)


async def test_cancelled_move_waits_for_its_thread_before_cleanup(tmp_path: Path) -> None:
    source, target = tmp_path / "one", tmp_path / "two"
    disk = SlowToMake(target)
    async with asyncio.timeout(PATIENCE_S):
        async with running(source, target, files=disk) as server, client_of(server) as client:
            await started(source, target, client, server, 5)
            assert await move(client, target) == ErrorCode.NONE
            await until(disk.is_making.is_set)
            taken_back = broker_of(server).replica_moves
            assert await move(client, source) == ErrorCode.NONE
            await until(disk.removed.is_set)
            assert not futures(target)
            assert not list(taken_back.of(data_directory(server, target)))
        async with running(source, target) as server, client_of(server) as client:
            assert place(server) == str(source)
            await check(client, 5)
            assert not futures(target)


async def test_power_loss_leaves_no_unnamed_log_or_deleted_records(
    tmp_path: Path,
) -> None:
    source, target = tmp_path / "one", tmp_path / "two"
    disk = DiskOfTheMove(source, target)
    async with (
        asyncio.timeout(PATIENCE_S),
        running(source, target, files=disk) as server,
        client_of(server) as client,
    ):
        await started(source, target, client, server, 5)
        topics = [{"name": "t", "partitions": [{"partition_index": 0, "offset": 3}]}]
        await client.ask(ApiKey.DELETE_RECORDS, 2, {"topics": topics, "timeout_ms": 1000})
        assert held(server).log.log_start_offset == 3
        assert await move(client, target) == ErrorCode.NONE
        await until(lambda: disk.log_starts)
        assert [name.endswith("-future") for name in disk.names or () if name.startswith("t-0")]
        assert disk.log_starts.endswith("\nt 0 3\n")
        await until(lambda: held(server).log.recovery_point == 5)


async def test_source_disk_failing_at_the_end_does_not_affect_the_target(tmp_path: Path) -> None:
    source, target = tmp_path / "one", tmp_path / "two"
    disk = DiskOfTheMove(source, target)
    disk.is_leaving_first = True
    async with (
        asyncio.timeout(PATIENCE_S),
        running(source, target, files=disk) as server,
        client_of(server) as client,
    ):
        await started(source, target, client, server, 5)
        assert await move(client, target) == ErrorCode.NONE
        first, second = data_directory(server, source), data_directory(server, target)
        await until(lambda: not (first.is_online and second.is_online))
        assert (first.is_online, second.is_online) == (False, True)
        await check(client, 5)
        assert await append(client, "t", batch(b"5")) == 5


async def test_cancelled_directory_assignment_is_corrected_despite_late_metadata(
    tmp_path: Path,
) -> None:
    source, target = tmp_path / "one", tmp_path / "two"
    async with (
        asyncio.timeout(PATIENCE_S),
        running(source, target) as server,
        client_of(server) as client,
    ):
        await started(source, target, client, server, 1)
        broker, partition = broker_of(server), held(server)
        replicas = broker.replicas
        assert server.replication is not None
        directories = server.replication.directories

        def recorded_directory() -> bytes:
            image = broker.metadata.image
            return directory_of(image.topics["t"].partitions[0], broker.node_id)

        await until(lambda: recorded_directory() == partition.directory.files.directory_id)
        before = replicas.image
        await directories.tell(partition, data_directory(server, target).files.directory_id)
        await until(
            lambda: recorded_directory() == data_directory(server, target).files.directory_id
        )
        newest, replicas.image = replicas.image, before
        directories.forget(partition)
        replicas.image = newest
        await until(
            lambda: recorded_directory() == data_directory(server, source).files.directory_id
        )
