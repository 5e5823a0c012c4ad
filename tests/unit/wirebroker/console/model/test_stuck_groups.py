"""Why groups make no progress."""

from __future__ import annotations

from array import array

import pytest

from wirebroker.console.model.cluster_state import WatchedGroup
from wirebroker.console.model.group_info import CommittedOffsets
from wirebroker.console.model.stuck_groups import stuck_of

NOW_MS = 1_000_000


def group(state: str, *, since_s: int = 0, progressed_s: int = 0) -> WatchedGroup:
    made = WatchedGroup("billing", "classic", NOW_MS)
    made.take_state(state, 1, NOW_MS - 1000 * since_s)
    offsets = array("q", [5])
    progress = CommittedOffsets(
        NOW_MS - 1000 * progressed_s, array("i", [0]), offsets, frozenset({"t"})
    )
    made.take_progress(progress)
    return made


@pytest.mark.parametrize(
    ("made", "lag", "why"),
    [
        (group("Stable"), 100, None),
        (group("Stable", progressed_s=59), 100, None),
        (group("Stable", progressed_s=90), 0, None),
        (group("Stable", progressed_s=90), None, None),
        (group("Stable", progressed_s=90), 100, "has committed no offset for 90 s"),
        (group("Empty"), 0, None),
        (group("Empty"), 1, "it has no members, and 1 record wait"),
        (group("PreparingRebalance", since_s=29), 100, None),
        (group("PreparingRebalance", since_s=31), 0, "in PreparingRebalance for 31 s"),
        (group("Reconciling", since_s=300), 0, "in Reconciling for 300 s"),
        (group("NotReady"), None, "a topic of its topology is missing"),
    ],
)
def test_a_stuck_group_has_a_cause(made, lag, why):
    stuck = stuck_of(made, lag, NOW_MS)
    if why is None:
        assert stuck is None
    else:
        assert stuck is not None
        assert why in stuck.why
        assert stuck.next_step


def test_a_rebalance_counts_from_its_first_state():
    made = group("Stable", since_s=100)
    made.take_state("PreparingRebalance", 1, NOW_MS - 20_000)
    assert stuck_of(made, 0, NOW_MS) is None


def test_the_same_offsets_are_no_progress():
    made = group("Stable", progressed_s=70)
    same = CommittedOffsets(NOW_MS, array("i", [0]), array("q", [5]), frozenset({"t"}))
    made.take_progress(same)
    assert stuck_of(made, 10, NOW_MS) is not None
    made.take_progress(same._replace(offsets=array("q", [6])))
    assert stuck_of(made, 10, NOW_MS) is None
