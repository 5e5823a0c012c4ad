"""The voters and the kraft.version of each offset of the log, committed or not.

A replica acts by the last voters in its log, even if they are not committed. A truncation brings
earlier ones back; a snapshot needs those at its end. Offset -1 is that of the snapshot that a
storage tool wrote.

Source: Kafka's KRaftControlRecordStateMachine and VoterSetHistory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from wirebroker.codecs.records.control import KRaftVersion, KRaftVoters
from wirebroker.coordinator.raft.model.voter_set import VoterSet

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wirebroker.codecs.records.control import ControlRecord
    from wirebroker.coordinator.raft.model.log_point import RaftBatch

T = TypeVar("T")


class VoterHistory:
    """Voters and versions by the offset of their record.

    Attributes:
        static_voters: The voters while the log contains none, with kraft.version 0.
        last_voters: The voters that count now.
    """

    __slots__ = ("_versions", "_voters", "last_voters", "static_voters")

    def __init__(self, static_voters: VoterSet) -> None:
        self.static_voters = static_voters
        self.last_voters = static_voters
        # In the order of offsets.
        self._voters: list[tuple[int, VoterSet]] = []
        self._versions: list[tuple[int, int]] = []

    @property
    def last_offset(self) -> int | None:
        """The offset of the last record of voters, if there is one."""
        return self._voters[-1][0] if self._voters else None

    @property
    def kraft_version(self) -> int:
        """The last level of kraft.version."""
        return self._versions[-1][1] if self._versions else 0

    def add(self, batch: RaftBatch) -> bool:
        """Read a batch's control records; return whether there are voters among them."""
        return self._add(enumerate(batch.controls, batch.base_offset))

    def reset(self, last_offset: int, controls: Iterable[ControlRecord]) -> None:
        """Replace everything by a snapshot's control records.

        Args:
            last_offset: The offset before the snapshot's end, which all of them get.
            controls: The records.
        """
        self._voters.clear()
        self._versions.clear()
        self._add((last_offset, record) for record in controls)
        self.last_voters = self._voters_that_count()

    def truncate(self, end_offset: int) -> None:
        """Forget the records from an offset on."""
        while self._voters and self._voters[-1][0] >= end_offset:
            self._voters.pop()
        while self._versions and self._versions[-1][0] >= end_offset:
            self._versions.pop()
        self.last_voters = self._voters_that_count()

    def forget_before(self, offset: int) -> None:
        """Forget what a log that ends at `offset` or later does not need.

        What counts just before `offset` is kept, because the log may be truncated to there.
        """
        _forget_before(self._voters, offset)
        _forget_before(self._versions, offset)

    def voters_at(self, offset: int) -> VoterSet | None:
        """Return the recorded voters of an offset."""
        return _value_at(self._voters, offset)

    def records_at(self, offset: int) -> tuple[ControlRecord, ...]:
        """Return the control records of a snapshot whose last record has this offset."""
        version = _value_at(self._versions, offset)
        voters = self.voters_at(offset)
        if not version or voters is None:
            return ()
        return (KRaftVersion(version), voters.to_record())

    def _voters_that_count(self) -> VoterSet:
        """Return the last recorded voters.

        From kraft.version 1 on, static ones never count: a directory that is formatted to join a
        quorum has none, whatever the configuration names.
        """
        if self._voters:
            return self._voters[-1][1]
        return VoterSet() if self.kraft_version else self.static_voters

    def _add(self, controls: Iterable[tuple[int, ControlRecord]]) -> bool:
        has_voters = False
        for offset, record in controls:
            if isinstance(record, KRaftVersion):
                self._versions.append((offset, record.kraft_version))
            elif isinstance(record, KRaftVoters):
                self.last_voters = VoterSet(record.voters)
                self._voters.append((offset, self.last_voters))
                has_voters = True
        return has_voters


def _value_at(entries: list[tuple[int, T]], offset: int) -> T | None:
    return next((value for at, value in reversed(entries) if at <= offset), None)


def _forget_before(entries: list[tuple[int, T]], offset: int) -> None:
    while len(entries) > 1 and entries[1][0] < offset:
        entries.pop(0)
