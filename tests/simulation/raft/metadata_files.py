"""The files of one metadata log through appends, truncations, snapshots and power losses.

    life = MetadataFiles(Random(seed), is_voter=False)
    life.run()

The bytes of each batch are unique. So each start can check that the log is a chain of batches that
were appended one after the other. A voter syncs, and must not lose anything that it synced. An
observer never syncs, and may lose anything except its snapshots. A kill between two writes loses
nothing, and one in the middle of a write may leave a snapshot's name unsynced.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from tests.simulation.machine.crash_states import CrashKind, crash
from tests.simulation.machine.disk import Disk
from tests.simulation.machine.loop import KilledError
from tests.simulation.machine.simulated_files import SimulatedFiles
from wirebroker.base.clock import SystemClock
from wirebroker.codecs.metadata_records import RecordType, metadata_record
from wirebroker.quorum.log.metadata_batches import BatchBuilder, EncodedBatches
from wirebroker.quorum.log.metadata_snapshot import SnapshotId
from wirebroker.quorum.log.metadata_store import MetadataStore

if TYPE_CHECKING:
    from random import Random

LIVES = 4
# Sizes of batches: within a sector, a few sectors, a few pages.
SIZES = (20, 20, 20, 900, 9_000)


class End(NamedTuple):
    """The end of a log, after which the next batch is appended."""

    offset: int
    epoch: int


class MetadataFiles:
    """One directory; `counts` has the numbers of operations and crashes."""

    def __init__(self, random: Random, *, is_voter: bool) -> None:
        self.random = random
        self.is_voter = is_voter
        self.counts: Counter[str] = Counter()
        self.disk = Disk()
        self.epoch = 1
        self._number = 0
        # For each batch: the end after which it was appended, and the batch before that end.
        self._before: dict[bytes, tuple[End, bytes | None]] = {}
        # The batches after the newest snapshot, and facts about them.
        self.log: list[bytes] = []
        self.end = End(0, 0)
        self.committed = End(0, 0)
        self.synced = 0
        self.snapshot = SnapshotId(0, 0)
        # Whether the life ended between two operations.
        self.is_whole = True
        self.due_snapshot: SnapshotId | None = None
        files = self._new_files()
        files.make_directory("/data")
        files.sync_directory("/")
        self._open(CrashKind.KILL)

    def run(self) -> None:
        """Run some lives, each of which ends in a crash."""
        for _ in range(LIVES):
            if self.random.random() < 0.5:
                self.files.dies_at_write = self.files.writes + self.random.randrange(1, 60)
            self.is_whole = True
            try:
                for _ in range(self.random.randrange(1, 25)):
                    self._operate()
            except KilledError:
                self.is_whole = False
                self.counts["died in a write"] += 1
            kind = self.random.choice(list(CrashKind))
            self.files.die()
            self.disk = crash(self.disk, kind, self.random)
            self._open(kind)

    # A life

    def _operate(self) -> None:
        operation = self.random.choices(
            [self._append, self._commit, self._roll, self._write_snapshot, self._truncate],
            weights=[6, 4, 2, 2, 1],
        )[0]
        operation()
        if self.random.random() < 0.03:
            self._install()
        if self.is_voter and self.random.random() < 0.5:
            self._sync()

    def _append(self) -> None:
        batches = EncodedBatches([], [])
        end = self.end
        last = self.log[-1] if self.log else None
        for _ in range(self.random.randrange(1, 4)):
            builder = BatchBuilder(base_offset=end.offset, leader_epoch=self.epoch, timestamp_ms=1)
            name = f"{self._number:0{self.random.choice(SIZES)}}"
            self._number += 1
            builder.add(metadata_record(RecordType.TOPIC, name=name, topic_id=bytes(16)))
            builder.finish_batch()
            (batch,) = map(bytes, builder.batches.buffers)
            self._before[batch] = end, last
            batches.buffers.extend(builder.batches.buffers)
            batches.headers.extend(builder.batches.headers)
            end, last = End(builder.next_offset, self.epoch), batch
        self.store.append(*batches)
        self.log += map(bytes, batches.buffers)
        self.end = end
        self.counts["appends"] += 1

    def _commit(self) -> None:
        self.committed = self.end

    def _roll(self) -> None:
        """Prepare a snapshot of everything, as RaftSnapshots does."""
        is_synced = not self.is_voter or self.synced == self.end.offset
        if (
            self.due_snapshot is None
            and self.committed == self.end
            and self.end.offset
            and is_synced
        ):
            self.store.roll()
            self.due_snapshot = SnapshotId(*self.end)

    def _write_snapshot(self) -> None:
        if self.due_snapshot is not None:
            snapshot, self.due_snapshot = self.due_snapshot, None
            self.store.write_snapshot(snapshot, bytes(self.random.choice(SIZES)))
            self.snapshot = max(self.snapshot, snapshot)
            self.store.advance_start(snapshot)
            self.counts["snapshots"] += 1

    def _truncate(self) -> None:
        """Follow another leader, whose log differs after the committed records."""
        self.epoch += 1
        while self.end.offset > self.committed.offset and self.random.random() < 0.7:
            self.end = self._before[self.log.pop()][0]
        self.synced = min(self.synced, self.end.offset)
        for sync in self.store.truncate_to(self.end.offset):
            sync()
        self.counts["truncations"] += 1

    def _install(self) -> None:
        """Replace the log by a later leader's snapshot."""
        self.epoch += 1
        self.due_snapshot = None
        self.end = self.committed = End(self.end.offset + self.random.randrange(1, 9), self.epoch)
        snapshot = SnapshotId(*self.end)
        self.store.write_snapshot(snapshot, bytes(self.random.choice(SIZES)))
        self.snapshot, self.synced = snapshot, self.end.offset
        self.log = []
        self.store.restart_at(snapshot)
        self.counts["installed snapshots"] += 1

    def _sync(self) -> None:
        self.store.sync()
        self.synced = self.end.offset

    # A start

    def _open(self, kind: CrashKind) -> None:
        self.files = self._new_files()
        self.store = MetadataStore(self.files, "/data", SystemClock())
        self.store.open()
        batches = self.store.recover(may_refetch=not self.is_voter)
        self.store.remove_leftovers()
        self.counts[kind.name] += 1
        found = self.store.snapshots[-1] if self.store.snapshots else SnapshotId(0, 0)
        if self._number:
            assert found >= self.snapshot, f"lost snapshot {self.snapshot}: {found}"
        # A kill in the middle of a write leaves names that a power loss can still take.
        if self.is_voter or self.is_whole or kind is not CrashKind.KILL:
            self.snapshot = found
        end_before = self.end
        self._check([batch for _, batch in batches], End(*found))
        if self.is_voter and self._number:
            assert self.end.offset >= self.synced, f"lost synced records from {self.end}"
        if kind is CrashKind.KILL and self.is_whole:
            assert self.end == end_before, f"a kill changed the end {end_before}: {self.end}"
        self.synced = self.end.offset
        if self.is_voter:
            self.store.sync()
        self.epoch += 1
        self.committed = End(*found)
        self.due_snapshot = None

    def _new_files(self) -> SimulatedFiles:
        def kill() -> None:
            self.files.die()

        return SimulatedFiles(self.disk, SystemClock(), kill)

    def _check(self, batches: list[bytes], start: End) -> None:
        """Check that these batches followed each other, and the snapshot's end."""
        self.log = batches
        self.end = start
        for position, batch in enumerate(batches):
            end, before = self._before[batch]
            header = self.store_header(batch)
            assert end.offset == self.end.offset, f"a gap: {self.end}, then {end}"
            assert end.epoch == self.end.epoch, f"after another batch: {self.end}, then {end}"
            if position:
                assert before == batches[position - 1], f"after another batch at {self.end}"
            self.end = End(*header)
        assert self.store.end_offset == self.end.offset, "the store ends elsewhere"
        assert self.store.start_offset <= start.offset, "the log begins after its snapshot"
        epochs = self.store.epochs
        assert epochs == sorted(set(epochs)), f"epochs {epochs}"
        assert max((epoch for epoch, _ in epochs), default=self.end.epoch) == self.end.epoch
        others = self.store.snapshots[:-1]
        assert all(other.end_offset >= self.store.start_offset for other in others), others

    @staticmethod
    def store_header(batch: bytes) -> tuple[int, int]:
        """Return the end offset and the epoch of a batch."""
        base_offset = int.from_bytes(batch[:8])
        return base_offset + 1, int.from_bytes(batch[12:16])
