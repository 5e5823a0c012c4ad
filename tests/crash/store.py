"""One process with one log directory: the broker's start, checkpoints and clean shutdown.

Logs, checkpoints and the order of steps are the broker's own. There is no loop, so every run is the
same.
"""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Final

from tests.simulation.machine.disk import Create, Disk, SyncDirectory
from tests.simulation.machine.loop import KilledError
from tests.simulation.machine.simulated_files import SimulatedFiles
from tests.support.harness.seeded_ids import seeded_ids
from wirebroker.disks.data_directory import DataDirectory, Offsets
from wirebroker.storage.log.log import Log
from wirebroker.storage.log_directory import LogDirectory
from wirebroker.storage.recovery.log_recovery import load_log

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tests.support.records.clocks import HandClock
    from wirebroker.config.rows.topic import TopicSettings
    from wirebroker.storage.log.flush import FlushTarget

TOPIC: Final = "t"
TOPIC_ID: Final = bytes(range(16))
DATA: Final = "/data"
FOREVER_MS: Final = 1 << 60


def new_disk(*, is_recorded: bool = False) -> Disk:
    disk = Disk(is_recorded=is_recorded)
    disk.apply(Create(0, DATA.strip("/"), is_directory=True))
    disk.apply(SyncDirectory(0))
    return disk


class Store:
    """A log directory and its open partitions.

    Attributes:
        logs: By partition.
        was_clean: Whether the previous process shut down cleanly.
    """

    def __init__(
        self,
        disk: Disk,
        settings: TopicSettings,
        *,
        clock: HandClock,
        partitions: Iterable[int] = (0,),
        dies_at_write: int | None = None,
    ) -> None:
        self.disk = disk
        self.clock = clock
        self.settings = settings
        self.files = SimulatedFiles(disk, clock, self._kill)
        self.files.dies_at_write = dies_at_write
        disk.locks.clear()
        with seeded_ids(Random(0)):
            self.directory = LogDirectory.open(DATA, self.files, node_id=1)
        self.data_directory = DataDirectory(self.directory)
        self.was_clean = self.directory.was_clean
        offsets = self.data_directory.read_checkpoints()
        self.directory.remove_clean_shutdown_marker()
        self.logs: dict[int, Log] = {}
        for partition in partitions:
            self._open(
                partition,
                offsets.recovery_points.get((TOPIC, partition), 0),
                offsets.log_start_offsets.get((TOPIC, partition), 0),
            )

    def checkpoint(self, recovery_points: Mapping[int, int] | None = None) -> None:
        """Write the checkpoint files, with lower recovery points for some partitions if given."""
        self.data_directory._write(self._offsets(recovery_points or {}))

    def flush(self, log: Log, target: FlushTarget | None) -> None:
        if target is not None:
            target.sync()
            self.data_directory.sync_names()
            log.mark_flushed(target.offset)

    def stop(self) -> None:
        for log in self.logs.values():
            log.close(clean=True)
        self.checkpoint()
        self.directory.mark_clean_shutdown(broker_epoch=7)
        self.directory.close()

    def _offsets(self, recovery_points: Mapping[int, int]) -> Offsets:
        offsets = Offsets()
        for key, log in self.logs.items():
            offsets.add(SimpleNamespace(log=log, topic=TOPIC, index=key))
            if key in recovery_points:
                offsets.recovery_points[TOPIC, key] = recovery_points[key]
        return offsets

    def _open(self, partition: int, recovery_point: int, log_start_offset: int) -> None:
        path = self.directory.partition_path(TOPIC, partition)
        is_clean = self.was_clean
        if not self.files.exists(path):
            self.directory.create_partition_directory(TOPIC, partition, TOPIC_ID)
            self.data_directory.note_new_names()
            is_clean = True
            recovery_point = log_start_offset = 0
        log = Log(
            path,
            self.files,
            topic=TOPIC,
            partition=partition,
            topic_id=TOPIC_ID,
            settings=self.settings,
            producer_id_expiration_ms=FOREVER_MS,
        )
        load_log(
            log,
            recovery_point=recovery_point,
            clean=is_clean,
            now_ms=self.clock.now_ms(),
            log_start_offset=log_start_offset,
        )
        log.set_high_watermark(log.log_end_offset)
        self.logs[partition] = log

    def _kill(self) -> None:
        self.files.is_dead = True
        raise KilledError
