"""The disk of a simulated replica: a log whose last writes are lost in a crash, and snapshots.

Writes of the log take effect at once for the replica. A sync makes those before it durable when it
ends; a crash keeps any prefix of the others. `quorum-state` and snapshots are written as a whole. A
disk that fails raises OSError, and what it had not synced may be lost.
"""

from __future__ import annotations

import errno
import io
import pickle
from typing import TYPE_CHECKING, NamedTuple

from wirebroker.codecs.records.control import KRaftVersion
from wirebroker.coordinator.raft.model.election_state import (
    ElectionState,
    decode_election_state,
    encode_election_state,
)
from wirebroker.coordinator.raft.model.log_view import LogView
from wirebroker.coordinator.raft.model.voter_history import VoterHistory
from wirebroker.coordinator.raft.protocol.messages import FetchSnapshotResponse, LogFetchResponse

if TYPE_CHECKING:
    from random import Random

    from wirebroker.codecs.records.control import ControlRecord
    from wirebroker.coordinator.raft.model.log_point import LogPoint, RaftBatch
    from wirebroker.coordinator.raft.model.voter_set import VoterSet

BATCH_BYTES = 100


class RaftSnapshot(NamedTuple):
    """A snapshot; like Kafka's, its bytes are a header and then one batch after the other."""

    point: LogPoint
    controls: tuple[ControlRecord, ...]
    # What has been applied before the snapshot's end.
    applied: tuple[RaftBatch, ...]

    def encode(self) -> bytes:
        parts = [(self.point, self.controls), *self.applied]
        return b"".join(map(pickle.dumps, parts))

    @classmethod
    def decode(cls, content: bytes) -> RaftSnapshot:
        """Return the snapshot in these bytes, without a batch that is incomplete."""
        stream = io.BytesIO(content)
        point, controls = pickle.load(stream)
        batches: list[RaftBatch] = []
        while stream.tell() < len(content):
            try:
                batches.append(pickle.load(stream))
            except (EOFError, pickle.UnpicklingError):
                break
        return cls(point, controls, tuple(batches))


class LogContents:
    """Batches after a start offset, and the snapshots that are not deleted."""

    def __init__(self) -> None:
        self.start_offset = 0
        self.batches: list[RaftBatch] = []
        self.snapshots: dict[LogPoint, bytes] = {}

    @property
    def end_offset(self) -> int:
        return self.batches[-1].end_offset if self.batches else self.start_offset

    @property
    def replacing_snapshot(self) -> LogPoint | None:
        """The newest snapshot, if the log has lost records that it contains."""
        latest = max(self.snapshots, default=None)
        last_epoch = self.batches[-1].epoch if self.batches else 0
        if latest is None or latest <= (last_epoch, self.end_offset):
            return None
        return latest if latest.offset > self.start_offset else None

    def apply(self, write: tuple) -> None:
        match write:
            case ("append", batch):
                assert batch.base_offset == self.end_offset, (batch, self.end_offset)
                self.batches.append(batch)
            case ("truncate", end_offset):
                while self.batches and self.batches[-1].base_offset >= end_offset:
                    self.batches.pop()
                assert self.end_offset == end_offset, (self.end_offset, end_offset)
            case ("delete", point):
                self.start_offset = point.offset
                self.batches = [b for b in self.batches if b.base_offset >= point.offset]
                self.snapshots = {p: s for p, s in self.snapshots.items() if p >= point}

    def contains(self, batch: RaftBatch) -> bool:
        if batch.end_offset <= self.start_offset:
            return True
        return any(b is batch or b == batch for b in reversed(self.batches))

    def copy(self) -> LogContents:
        other = LogContents()
        other.start_offset = self.start_offset
        other.batches = self.batches.copy()
        other.snapshots = self.snapshots.copy()
        return other


class RaftDisk:
    def __init__(self, static_voters: VoterSet) -> None:
        self.static_voters = static_voters
        self.quorum_state: bytes | None = None
        self.contents = LogContents()
        self.durable = LogContents()
        self._unsynced: list[tuple] = []
        self._synced_count = 0  # writes that are durable, since the last restart
        self.download: tuple[LogPoint, bytearray] | None = None
        self.writes_until_failure: int | None = None

    def _may_fail(self) -> None:
        if self.writes_until_failure is not None:
            self.writes_until_failure -= 1
            if self.writes_until_failure < 0:
                raise OSError(errno.EIO, "the simulated disk failed")

    def persist(self, election: ElectionState, data_version: int) -> None:
        self._may_fail()
        self.quorum_state = encode_election_state(election, data_version)

    def write(self, *write: object) -> None:
        self._may_fail()
        self.contents.apply(write)
        self._unsynced.append(write)

    def begin_sync(self) -> int:
        return self._synced_count + len(self._unsynced)

    def end_sync(self, count: int) -> None:
        self._may_fail()
        newly_synced = count - self._synced_count
        if newly_synced > 0:  # else a later sync has ended before
            for write in self._unsynced[:newly_synced]:
                self.durable.apply(write)
            del self._unsynced[:newly_synced]
            self._synced_count = count

    def add_snapshot(self, snapshot: RaftSnapshot) -> int:
        self._may_fail()
        content = snapshot.encode()
        for contents in (self.contents, self.durable):
            contents.snapshots[snapshot.point] = content
        return len(content)

    def install(self, snapshot: RaftSnapshot) -> int:
        """Replace the log by a snapshot that is on disk."""
        content = snapshot.encode()
        self.durable = LogContents()
        self.durable.start_offset = snapshot.point.offset
        self.durable.snapshots[snapshot.point] = content
        self.contents = self.durable.copy()
        self._synced_count += len(self._unsynced)
        self._unsynced.clear()
        return len(content)

    def write_download(self, point: LogPoint, position: int, data: bytes) -> None:
        self._may_fail()
        if position == 0:
            self.download = (point, bytearray())
        assert self.download is not None
        assert self.download[0] == point
        assert len(self.download[1]) == position
        self.download[1].extend(data)

    def discard_download(self, point: LogPoint) -> None:
        assert self.download is not None
        assert self.download[0] == point
        self.download = None

    def finish_download(self, point: LogPoint) -> RaftSnapshot:
        assert self.download is not None
        snapshot = RaftSnapshot.decode(bytes(self.download[1]))
        assert snapshot.point == point
        self.download = None
        return snapshot

    def filled(self, response):
        """Return a response with the records or bytes that it names."""
        if isinstance(response, LogFetchResponse) and response.records is not None:
            part = response.records
            batches = [
                b
                for b in self.contents.batches
                if part.start_offset <= b.base_offset < part.end_offset
            ]
            count = max(1, part.max_bytes // BATCH_BYTES)
            return response._replace(records=None, batches=tuple(batches[:count]))
        if isinstance(response, FetchSnapshotResponse) and response.bytes_to_read is not None:
            assert response.snapshot is not None
            content = self.contents.snapshots[response.snapshot]
            piece = response.bytes_to_read
            data = content[piece.position : piece.position + piece.max_bytes]
            return response._replace(bytes_to_read=None, data=data)
        return response

    def crash(self, random: Random) -> None:
        """Lose a random number of the last unsynced writes."""
        kept = random.choice([0, len(self._unsynced), random.randint(0, len(self._unsynced))])
        for write in self._unsynced[:kept]:
            self.durable.apply(write)
        self._unsynced.clear()
        self._synced_count = 0
        self.contents = self.durable.copy()
        self.download = None
        self.writes_until_failure = None

    def load(self) -> tuple[LogView, VoterHistory, ElectionState, list[RaftBatch]]:
        """Return the state with which a replica starts, and what its last snapshot applied."""
        self._begin_at_newest_snapshot()
        contents = self.contents
        epochs: list[tuple[int, int]] = []
        for batch in contents.batches:
            if not epochs or epochs[-1][0] != batch.epoch:
                epochs.append((batch.epoch, batch.base_offset))
        log = LogView(
            start_offset=contents.start_offset,
            end_offset=contents.end_offset,
            epochs=epochs,
            snapshots=[(point, len(content)) for point, content in contents.snapshots.items()],
        )
        history, applied = self._read(contents)
        election = ElectionState()
        if self.quorum_state is not None:
            election = decode_election_state(self.quorum_state)
        return log, history, election, applied

    def voters_after_crash(self) -> set[VoterSet]:
        """Return the voters that may count after a crash, which keeps any prefix of the writes."""
        contents = self.durable.copy()
        found = {self._read(contents)[0].last_voters}
        for write in self._unsynced:
            contents.apply(write)
            if write[0] != "append" or write[1].controls:
                found.add(self._read(contents)[0].last_voters)
        return found

    def _begin_at_newest_snapshot(self) -> None:
        """Replace the log by a snapshot whose records it has lost."""
        latest = self.contents.replacing_snapshot
        if latest is not None:
            self.install(RaftSnapshot.decode(self.contents.snapshots[latest]))

    def _read(self, contents: LogContents) -> tuple[VoterHistory, list[RaftBatch]]:
        """Return the voters in a log, and what its last snapshot applied."""
        history = VoterHistory(self.static_voters)
        applied: list[RaftBatch] = []
        latest = max(contents.snapshots, default=None)
        if latest is not None:
            snapshot = RaftSnapshot.decode(contents.snapshots[latest])
            history.reset(latest.offset - 1, snapshot.controls)
            applied = list(snapshot.applied)
        for batch in () if contents.replacing_snapshot else contents.batches:
            if latest is None or batch.base_offset >= latest.offset:
                history.add(batch)
        return history, applied


def formatted_controls(voters: VoterSet) -> tuple[ControlRecord, ...]:
    return (KRaftVersion(1), voters.to_record())
