"""When the refusals of a leader are final."""

from __future__ import annotations

import pytest

from wirebroker.net.client.settings import PeerAddress
from wirebroker.quorum.membership.leader_refusals import LeaderRefusals

LEADER = PeerAddress("a", 1)


@pytest.mark.parametrize(
    ("times_s", "is_final"),
    [
        ([0, 2, 4, 6, 8, 9.9], False),
        ([0, 2, 4, 6, 8, 10], True),
        # A leader that was down in between may be loading its ACLs again.
        ([0, 11], False),
        ([0, 2, 6, 8, 10, 12], False),
    ],
)
def test_refusals_are_final_when_they_continue_for_ten_seconds(
    times_s: list[float], is_final: bool
) -> None:
    refusals = LeaderRefusals()
    results = [refusals.are_final(LEADER, heard_s=None, now_s=now_s) for now_s in times_s]
    assert results == [*[False] * (len(times_s) - 1), is_final]


@pytest.mark.parametrize(
    ("times_s", "is_final"),
    [
        ([0, 2, 4, 6, 8, 10, 12, 14.9], False),
        ([1, 3, 6, 8, 10, 12, 14, 16], True),
        ([0, 4, 6, 8, 10, 12, 14, 16, 18], False),
    ],
)
def test_refusals_before_a_leader_is_known_are_final_after_fifteen_seconds(
    times_s: list[float], is_final: bool
) -> None:
    refusals = LeaderRefusals()
    results = [refusals.are_final(None, now_s=now_s) for now_s in times_s]
    assert results == [*[False] * (len(times_s) - 1), is_final]


def test_refusals_of_the_first_leader_begin_their_own_time() -> None:
    refusals = LeaderRefusals()
    assert not refusals.are_final(None, now_s=0)
    assert not refusals.are_final(None, now_s=2)
    assert not any(refusals.are_final(LEADER, now_s=now_s) for now_s in (4, 6, 8, 10, 12))
    assert refusals.are_final(LEADER, now_s=14)


def test_another_response_restarts_the_time() -> None:
    refusals = LeaderRefusals()
    assert not any(refusals.are_final(None, now_s=now_s) for now_s in range(0, 15, 2))
    refusals.restart()
    assert not any(refusals.are_final(None, now_s=now_s) for now_s in range(15, 30, 2))
    assert refusals.are_final(None, now_s=30)
