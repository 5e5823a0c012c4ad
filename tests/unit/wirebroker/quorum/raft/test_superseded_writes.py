"""Which writes of `quorum-state` a step needs."""

from __future__ import annotations

from wirebroker.coordinator.raft.model.election_state import ElectionState
from wirebroker.coordinator.raft.model.log_point import LogPoint, RaftBatch
from wirebroker.coordinator.raft.protocol.actions import Append, LeaderChanged, Persist, Sync
from wirebroker.quorum.raft.superseded_writes import needed

FIRST, SECOND, THIRD = (Persist(ElectionState(epoch), 0) for epoch in (1, 2, 3))
APPEND = Append((RaftBatch(0, 1, 2),))


def test_only_the_last_write_before_an_effect_is_needed() -> None:
    change = LeaderChanged(None, 2)
    sync = Sync(LogPoint(2, 1))
    assert needed([FIRST, change, SECOND, APPEND, sync, THIRD]) == [
        change,
        SECOND,
        APPEND,
        sync,
        THIRD,
    ]


def test_a_write_before_an_effect_is_kept() -> None:
    assert needed([FIRST, APPEND, SECOND]) == [FIRST, APPEND, SECOND]
    assert needed([APPEND, FIRST]) == [APPEND, FIRST]
    assert needed([]) == []
