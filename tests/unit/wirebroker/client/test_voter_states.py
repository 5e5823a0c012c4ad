"""Which voters follow the leader of a quorum, and the recommendation for each of the others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from wirebroker.client.cluster.quorum import DescribedQuorum, QuorumReplica, quorum_of
from wirebroker.client.cluster.voter_states import (
    advice_of,
    has_dynamic_voters,
    missing_text,
    summary_of,
    voters_of,
)
from wirebroker.config.quorum import parse_address

NOW_MS = 1_000_000


def replica(node_id, *, silent_ms=0, is_voter=True, has_directory=True):
    directory_id = bytes([has_directory]) * 16
    fetched_ms = None if silent_ms is None else NOW_MS - silent_ms
    return QuorumReplica(node_id, is_voter, 10, 0, 0, directory_id, fetched_ms, NOW_MS)


def quorum(*replicas, leader_id=1):
    endpoints = {node.node_id: [f"CONTROLLER://c{node.node_id}:9093"] for node in replicas}
    return DescribedQuorum(leader_id, 5, 10, list(replicas), NOW_MS, endpoints)


def test_all_voters_of_three_fetch():
    described = quorum(
        replica(1, silent_ms=None), replica(2), replica(3), replica(4, is_voter=False)
    )
    assert voters_of(described).ids == [1, 2, 3]
    assert summary_of(described) == "3 voters (1, 2, 3): 1 more may fail"
    assert advice_of(described) == []


def test_a_voter_that_does_not_fetch_is_missing():
    described = quorum(replica(1), replica(2, silent_ms=65_000), replica(3))
    voters = voters_of(described)
    assert (voters.missing_ids, voters.majority, voters.spare) == ([2], 2, 0)
    assert summary_of(described) == "3 voters (1, 2, 3), 2 missing: 0 more may fail"
    text = missing_text(described, voters.missing[0])
    assert text == "controller 2 at CONTROLLER://c2:9093 has not fetched for 65 s"
    assert advice_of(described) == [
        "start controller 2, or check its log;"
        " if its disk is lost, `wirebroker quorum remove-voter 2 --yes`"
    ]


def test_a_voter_that_never_fetched_from_this_leader_is_missing():
    described = quorum(replica(1), replica(2), replica(3, silent_ms=None), leader_id=2)
    (voter,) = voters_of(described).missing
    assert missing_text(described, voter).endswith("c3:9093 has not fetched from the leader")


def test_voter_that_runs_on_another_directory_is_replaced():
    described = quorum(
        replica(1), replica(2, silent_ms=None), replica(3), replica(2, is_voter=False)
    )
    (voter,) = voters_of(described).missing
    text = missing_text(described, voter)
    assert text == "controller 2 at CONTROLLER://c2:9093 has a new directory, so it does not vote"
    assert advice_of(described) == [
        "if the former directory still exists, restart controller 2 on it; otherwise keep the"
        " controller running, run `wirebroker quorum remove-voter 2 --yes`, wait until"
        " `wirebroker quorum` shows lag 0 for it, and run"
        " `wirebroker quorum add-voter 2@c2:9093 --yes`"
        " (with controller.quorum.auto.join.enable=true the controller does both itself)"
    ]


async def test_ipv6_address_in_the_next_step_is_accepted_by_add_voter():
    nodes = [
        SimpleNamespace(
            replica_id=node_id,
            log_end_offset=1,
            replica_directory_id=bytes([1]) * 16,
            last_fetch_timestamp=fetched_ms,
            last_caught_up_timestamp=fetched_ms,
        )
        for node_id, fetched_ms in ((1, 9_000), (2, 1), (2, 9_000))
    ]
    partition = SimpleNamespace(
        error_code=0,
        leader_id=1,
        leader_epoch=1,
        high_watermark=1,
        current_voters=nodes[:2],
        observers=nodes[2:],
    )
    listener = SimpleNamespace(name="CONTROLLER", host="fd00::2", port=9093)
    answer = SimpleNamespace(
        error_code=0,
        topics=[SimpleNamespace(partitions=[partition])],
        nodes=[SimpleNamespace(node_id=2, listeners=[listener])],
    )

    async def request_of_controller(*_arguments: Any) -> Any:
        return answer

    client: Any = SimpleNamespace(request_of_controller=request_of_controller)
    described = await quorum_of(client)
    assert described.endpoints == {2: ["CONTROLLER://[fd00::2]:9093"]}
    (step,) = advice_of(described)
    _, _, added = step.partition(" add-voter 2@")
    assert parse_address(added.partition(" ")[0], "x") == ("fd00::2", 9093)


def test_static_voters_are_not_removed():
    static = [
        replica(1, has_directory=False),
        replica(2, silent_ms=9_000, has_directory=False),
        replica(3, has_directory=False),
    ]
    assert not has_dynamic_voters(quorum(*static))
    assert advice_of(quorum(*static)) == [
        "start controller 2 on its own directory, or check its log"
    ]


def test_two_voters_need_a_third():
    (step,) = advice_of(quorum(replica(1), replica(2)))
    assert "add a third" in step
