"""Replicas of one partition, each on its node, and a controller, without a network or real time.

The test performs the work of fetchers and of metadata replication, in any order: each node applies
new metadata late, and a follower fetches on command.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.records.batches import batch
from tests.support.records.clocks import HandClock
from tests.support.replicas.roles import partition_image
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.batch import iterate_batches, iterate_records
from wirebroker.config import Config
from wirebroker.disks.data_directory import DataDirectory
from wirebroker.replica.group_commit import GroupCommit
from wirebroker.replica.leader_role import LeaderRole
from wirebroker.replica.partition import Partition
from wirebroker.replica.replica_context import ReplicaContext
from wirebroker.storage.files import Files
from wirebroker.storage.log.log import Log
from wirebroker.storage.log_directory import LogDirectory
from wirebroker.storage.recovery.log_recovery import load_log

if TYPE_CHECKING:
    from pathlib import Path

    from wirebroker.coordinator.controller.image.cluster_image import PartitionImage
    from wirebroker.replica.leader_role import IsrChange

MOST_LAG_MS = 1_000

# Errors after which a fetcher waits for newer metadata or its next turn.
_NOT_NOW = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.OFFSET_OUT_OF_RANGE,
    }
)


class Node:
    """One node with its replica.

    Attributes:
        late: Images that it has not applied yet.
        highest: Its highest high watermark in its present role.
    """

    def __init__(self, node_id: int, path: Path, clock: HandClock, **overrides: str) -> None:
        self.id = node_id
        self.clock = clock
        self._files = Files()
        self._directory = DataDirectory(LogDirectory.open(str(path), self._files, node_id=node_id))
        log_directory = self._directory.files.create_partition_directory("t", 0, b"i" * 16)
        settings = {name.replace("_", "."): value for name, value in overrides.items()}
        log = Log(
            log_directory,
            self._files,
            topic="t",
            partition=0,
            topic_id=b"i" * 16,
            settings=Config({}).topic_settings(settings),
        )
        load_log(log, recovery_point=0, clean=True, now_ms=0)
        commits = GroupCommit(is_always=False, on_failure=self._disk_failed)
        host = ReplicaContext(node_id, commits=commits, clock=clock, most_lag_ms=MOST_LAG_MS)
        self.partition = Partition(log, directory=self._directory, host=host)
        self.log = log
        self.late: list[PartitionImage] = []
        self.highest = 0

    def _disk_failed(self, directory: DataDirectory, error: OSError) -> None:
        raise AssertionError(f"{directory.path}: {error}")

    def hear(self) -> None:
        """Apply the oldest pending image."""
        if self.late and self.partition.enter(self.late.pop(0)):
            self.highest = self.log.high_watermark

    def append(self, value: bytes) -> int:
        """Append a record as the leader; return the log end offset."""
        self.partition.check_leader()
        records = memoryview(bytearray(batch(value)))
        now_ms = self.clock.now_ms()
        return self.partition.append(records, now_ms=now_ms, request_version=12).last_offset + 1

    def values(self, end: int) -> list[bytes | None]:
        if end <= 0:
            return []
        log_slice = self.log.read(0, 1 << 30, up_to_offset=self.log.log_end_offset).slice
        assert log_slice is not None
        records = memoryview(log_slice.read())
        values = [
            record.value
            for position, header in iterate_batches(records)
            for record in iterate_records(
                records[position : position + header.size], header, max_bytes=1 << 20
            )
        ]
        return values[:end]

    def check(self) -> None:
        self.partition.check()
        self.log.check()
        assert self.log.high_watermark >= self.highest, "it fell within a role"
        self.highest = self.log.high_watermark

    def close(self) -> None:
        self.log.close(clean=False)
        self._directory.files.close()
        self._files.close_all()


class ReplicaCluster:
    def __init__(self, path: Path, node_ids: tuple[int, ...] = (1, 2, 3), **overrides: str) -> None:
        self.clock = HandClock()
        self.nodes = {
            node_id: Node(node_id, path / str(node_id), self.clock, **overrides)
            for node_id in node_ids
        }
        self.image = partition_image(leader=node_ids[0], replicas=node_ids)
        # The values of all records that were ever committed.
        self.acknowledged: list[bytes | None] = []
        self._tell()
        for node in self.nodes.values():
            node.hear()

    def close(self) -> None:
        for node in self.nodes.values():
            node.close()

    def _tell(self) -> None:
        for node in self.nodes.values():
            node.late.append(self.image)

    # -- the controller ------------------------------------------------------------------------

    def elect(self, leader: int) -> None:
        """Make a member of the ISR the leader, with the next epoch."""
        if leader in self.image.isr:
            self.image = self.image._replace(
                leader=leader,
                leader_epoch=self.image.leader_epoch + 1,
                partition_epoch=self.image.partition_epoch + 1,
            )
            self._tell()

    def decide(self, node: Node, change: IsrChange, *, is_answered: bool = True) -> None:
        """Decide an AlterPartition; if not `is_answered`, its response is lost."""
        image = self.image
        epochs = image.leader_epoch, image.partition_epoch
        if epochs != (change.leader_epoch, change.partition_epoch):
            if is_answered:
                node.partition.isr_refused(change)
            return
        self.image = image._replace(isr=change.isr, partition_epoch=image.partition_epoch + 1)
        self._tell()
        if is_answered:
            node.partition.isr_accepted(change.isr, partition_epoch=self.image.partition_epoch)

    # -- a fetcher -----------------------------------------------------------------------------

    def fetch(self, follower: Node) -> bool:
        """Fetch once from the leader that the follower knows.

        Returns:
            Whether the leader may request that the follower joins the ISR.
        """
        role = follower.partition.role
        if isinstance(role, LeaderRole) or role.leader not in self.nodes:
            return False
        leader = self.nodes[role.leader]
        log = follower.log
        offset, epoch = log.log_end_offset, role.leader_epoch
        try:
            leader.partition.check_leader(epoch)
            diverged = self._divergence(leader, follower)
            if diverged is not None:
                follower.partition.truncate(
                    min(diverged, offset), leader_epoch=epoch, now_ms=self.clock.now_ms()
                )
                follower.highest = min(follower.highest, log.high_watermark)
                return False
            may_join = leader.partition.update_follower(
                follower.id,
                fetch_offset=offset,
                log_start_offset=log.log_start_offset,
                broker_epoch=-1,
                current_leader_epoch=epoch,
            )
        except KafkaError as error:
            if error.code not in _NOT_NOW:
                raise
            return False
        # One batch per fetch, so that followers lag.
        end_offset = leader.log.log_end_offset
        fetched = leader.log.read(offset, 1, up_to_offset=end_offset, min_one=True)
        follower.partition.append_as_follower(
            b"" if fetched.slice is None else fetched.slice.read(),
            leader_epoch=epoch,
            high_watermark=leader.log.high_watermark,
            log_start_offset=leader.log.log_start_offset,
            now_ms=self.clock.now_ms(),
        )
        return may_join

    def _divergence(self, leader: Node, follower: Node) -> int | None:
        """Return the offset to truncate a diverged follower to, or None."""
        log = follower.log
        last_epoch = log.leader_epochs.latest_epoch
        if last_epoch < 0:
            return None
        epoch, end_offset = leader.partition.end_offset_for_epoch(last_epoch)
        if epoch < 0:
            return None
        if epoch < last_epoch or end_offset < log.log_end_offset:
            _, own_end = log.end_offset_for_epoch(epoch)
            return min(end_offset, own_end if own_end >= 0 else end_offset)
        return None

    # -- invariants ------------------------------------------------------------------------------

    def check(self) -> None:
        """Assert that committed records are the same on all nodes and never change."""
        for node in self.nodes.values():
            node.check()
        best = max(self.nodes.values(), key=lambda node: node.log.high_watermark)
        committed = best.values(best.log.high_watermark)
        for node in self.nodes.values():
            high_watermark = node.log.high_watermark
            assert node.values(high_watermark) == committed[:high_watermark], node.id
        acknowledged = self.acknowledged
        assert committed[: len(acknowledged)] == acknowledged[: len(committed)], (
            "committed records have changed"
        )
        if len(committed) > len(acknowledged):
            self.acknowledged = committed
        acknowledged = self.acknowledged
        # Every possible leader has all committed records.
        for node_id in self.image.isr:
            assert self.nodes[node_id].values(len(acknowledged)) == acknowledged, (
                f"{node_id} lacks committed records"
            )
