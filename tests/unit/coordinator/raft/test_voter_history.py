"""The voters and the kraft.version of each offset, after snapshots and truncations."""

from __future__ import annotations

import pytest

from tests.support.coordinators.raft_kit import voter_set
from wirebroker.codecs.records.control import KRaftVersion
from wirebroker.coordinator.raft.model.log_point import RaftBatch
from wirebroker.coordinator.raft.model.voter_history import VoterHistory
from wirebroker.coordinator.raft.model.voter_set import VoterSet

FIRST, SECOND, THIRD = voter_set(1, 2, 3), voter_set(2, 3), voter_set(2, 3, 4)


def history() -> VoterHistory:
    """Return three sets of voters, recorded at offsets 2, 18 and 25."""
    made = VoterHistory(VoterSet())
    made.add(RaftBatch(1, 3, 1, (KRaftVersion(1), FIRST.to_record())))
    made.add(RaftBatch(18, 19, 3, (SECOND.to_record(),)))
    made.add(RaftBatch(25, 26, 3, (THIRD.to_record(),)))
    return made


@pytest.mark.parametrize(
    ("snapshot_end", "log_end", "expected"),
    [
        (18, 18, FIRST),  # the record just after the snapshot is truncated
        (18, 19, SECOND),
        (19, 19, SECOND),
        (20, 25, SECOND),
        (20, 26, THIRD),
        (26, 26, THIRD),
    ],
)
def test_truncation_after_a_snapshot_brings_back_the_voters_of_its_end(
    snapshot_end: int, log_end: int, expected: VoterSet
) -> None:
    made = history()
    made.forget_before(snapshot_end)
    made.truncate(log_end)
    assert made.last_voters == expected
    assert made.kraft_version == 1
    assert made.voters_at(log_end - 1) == expected
