"""A partition over a real log."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.records.batches import TIMESTAMP_MS, batch
from tests.support.replicas.roles import lead
from tests.support.storage.failing_files import FailingFiles
from wirebroker.base.clock import Slices, SystemClock
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.batch import build_batch
from wirebroker.config import Config
from wirebroker.disks.data_directory import DataDirectory
from wirebroker.replica.group_commit import GroupCommit
from wirebroker.replica.local_replica import LARGE_APPEND_BYTES
from wirebroker.replica.partition import Partition
from wirebroker.replica.replica_context import ReplicaContext
from wirebroker.storage.files import DataFile
from wirebroker.storage.log.log import Log
from wirebroker.storage.log_directory import LogDirectory
from wirebroker.storage.recovery.log_recovery import load_log

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


NODE = 1


class Kit:
    def __init__(self, path: Path, *, is_always: bool = False, **settings: str) -> None:
        self.disk = FailingFiles()
        self.directory = DataDirectory(LogDirectory.open(str(path), self.disk, node_id=NODE))
        topic_id = b"i" * 16
        partition_path = self.directory.files.create_partition_directory("t", 0, topic_id)
        overrides = {name.replace("_", "."): value for name, value in settings.items()}
        log = Log(
            partition_path,
            self.disk,
            topic="t",
            partition=0,
            topic_id=topic_id,
            settings=Config({}).topic_settings(overrides),
        )
        load_log(log, recovery_point=0, clean=True, now_ms=0)
        self.failures: list[OSError] = []
        self.commits = GroupCommit(is_always=is_always, on_failure=self._disk_failed)
        self.partition = Partition(
            log,
            directory=self.directory,
            host=ReplicaContext(
                NODE, commits=self.commits, clock=SystemClock(), most_lag_ms=30_000
            ),
        )
        lead(self.partition, leader_epoch=3)
        self.log = log

    def _disk_failed(self, directory: DataDirectory, error: OSError) -> None:
        assert directory is self.directory
        self.failures.append(error)
        self.take_offline()

    def take_offline(self) -> None:
        """Do what the replica manager does when a disk fails."""
        self.directory.is_online = False
        self.partition.resign()
        self.partition.wake_watchers()

    def append(self, *values: bytes) -> int:
        records = memoryview(bytearray(batch(*values)))
        now_ms = TIMESTAMP_MS
        return self.partition.append(records, now_ms=now_ms, request_version=12).base_offset

    def follow(self, value: bytes, *, offset: int = 0, high_watermark: int = 0) -> int:
        role = self.partition.role
        record = (None, value, ())
        return self.partition.append_as_follower(
            bytes(build_batch([record], base_offset=offset, leader_epoch=role.leader_epoch)),
            leader_epoch=role.leader_epoch,
            high_watermark=high_watermark,
            log_start_offset=0,
            now_ms=TIMESTAMP_MS,
        )

    async def append_in_turn(self, *values: bytes) -> int:
        records = memoryview(bytearray(batch(*values)))
        now_ms = TIMESTAMP_MS
        done = await self.partition.append_in_turn(
            records, now_ms=now_ms, request_version=12, slices=Slices(SystemClock())
        )
        return done.base_offset


def code_of(call: Callable[[], Any]) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        call()
    return caught.value.code


# Applies where records are parsed by Python; otherwise it is never reached.
BRIEF_RECORDS = 3_000


def large(fill: bytes = b"x") -> bytes:
    return fill * (LARGE_APPEND_BYTES + 1)


class HeldWrites:
    """Block writes of the log in their thread until the test releases them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.began = threading.Event()
        self.go = threading.Event()
        write = DataFile.write_at

        def held(file: DataFile, position: int, data: Any) -> None:
            self.began.set()
            assert self.go.wait(10)
            write(file, position, data)

        monkeypatch.setattr(DataFile, "write_at", held)

    async def wait_until_begun(self) -> None:
        assert await asyncio.to_thread(self.began.wait, 10)
