"""The log lines of a voter whose quorum has no leader."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING

from tests.support.tools.waiting import PATIENCE_S
from wirebroker.base.clock import SystemClock, pause
from wirebroker.codecs.records.control import Voter, VoterEndpoint
from wirebroker.coordinator.raft.model.replica_key import Destination, ReplicaKey
from wirebroker.coordinator.raft.model.voter_set import VoterSet
from wirebroker.quorum.raft import leader_watch
from wirebroker.quorum.raft.leader_watch import LeaderWatch, server_states, voter_states

if TYPE_CHECKING:
    import pytest


def _voter(node_id: int) -> Voter:
    return Voter(node_id, bytes(16), (VoterEndpoint("CONTROLLER", f"c{node_id}", 9093),), 0, 1)


async def test_a_quorum_without_a_leader_is_logged_once_with_its_voters(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(leader_watch, "_INTERVAL_S", 0.01)
    monkeypatch.setattr(leader_watch, "_PATIENCE_S", 0.05)
    node = SimpleNamespace(
        is_ended=False,
        key=ReplicaKey(1),
        has_working_leader=False,
        state_name="Prospective",
        voters=VoterSet(map(_voter, (1, 2))),
    )
    transport = SimpleNamespace(outcome=lambda node_id: f"node {node_id}: refused")
    describe = partial(voter_states, node, transport, "CONTROLLER")  # type: ignore[arg-type]
    watch = LeaderWatch(node, describe, SystemClock())  # type: ignore[arg-type]
    watch.start()
    await _until_lines(caplog, 1)
    node.has_working_leader = True
    await _until_lines(caplog, 2)
    await watch.stop()
    first, second = (record.getMessage() for record in caplog.records)
    assert first.endswith("1 at c1:9093 (this node, Prospective); 2 at c2:9093 (node 2: refused)")
    assert second == "the metadata quorum has a leader again"


def test_servers_are_described_with_the_outcome_of_the_last_request() -> None:
    outcomes = {-2: "responds", 1: "connection refused"}
    transport = SimpleNamespace(outcome=outcomes.__getitem__)
    servers = [Destination(-2, "c2", 9093), Destination(1, "c1", 9093)]
    text = server_states(servers, transport)
    assert text == "c2:9093 (responds); c1:9093 (connection refused)"


async def _until_lines(caplog: pytest.LogCaptureFixture, count: int) -> None:
    for _ in range(int(PATIENCE_S / 0.01)):
        if len(caplog.records) >= count:
            return
        await pause(0.01)
    raise AssertionError(f"{len(caplog.records)} lines instead of {count}")
