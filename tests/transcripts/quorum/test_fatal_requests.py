"""Requests that end Apache Kafka's process: a wirebroker refuses and reports them.

Apache Kafka 4.3.1 and 4.4.0 throw IllegalStateException in the raft thread, and exit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.tools.waiting import eventually
from tests.transcripts.quorum.quorum_driver import fresh_quorum_driver
from tests.transcripts.quorum.voters import is_listening
from tests.transcripts.script import parse

if TYPE_CHECKING:
    from pathlib import Path

_BEFORE = """settings quorum=static voters=1,2,3

send BeginQuorumEpoch 1
    cluster_id = CLUSTER
    topics = metadata(leader_id=2, leader_epoch=4)
    leader_endpoints = endpoints(2)
"""
_AFTER = """
send Vote 2
    cluster_id = CLUSTER
    topics = metadata(replica_epoch=4, replica_id=3, pre_vote=True)
"""
FATAL = {
    "another leader of the epoch": """
send BeginQuorumEpoch 1
    cluster_id = CLUSTER
    topics = metadata(leader_id=3, leader_epoch=4)
    leader_endpoints = endpoints(3)
""",
    "the resignation of another leader of the epoch": """
send EndQuorumEpoch 1
    cluster_id = CLUSTER
    topics = metadata(leader_id=3, leader_epoch=4, preferred_candidates=[])
    leader_endpoints = endpoints(3)
""",
    "a leader with the voter's own id": """
send BeginQuorumEpoch 1
    cluster_id = CLUSTER
    topics = metadata(leader_id=1, leader_epoch=7)
    leader_endpoints = endpoints(1)
""",
    "the resignation of a leader with the voter's own id": """
send EndQuorumEpoch 1
    cluster_id = CLUSTER
    topics = metadata(leader_id=1, leader_epoch=7, preferred_candidates=[])
    leader_endpoints = endpoints(1)
""",
    "a vote for the voter's own id": """
send Vote 2
    cluster_id = CLUSTER
    topics = metadata(replica_epoch=7, replica_id=1)
""",
}


def value(answer: list[str], field: str) -> str:
    (line,) = [line for line in answer if f"partitions[0].{field} = " in line]
    return line.partition(" = ")[2]


@pytest.mark.parametrize("request_text", FATAL.values(), ids=FATAL)
def test_request_is_refused_and_changes_nothing(
    request_text: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    kind = request.config.getoption("--broker", default="wirebroker")
    steps = parse(_BEFORE + request_text + _AFTER)
    with fresh_quorum_driver(kind, tmp_path, steps) as driver:
        assert value(driver.answer(steps[1]), "leader_id") == "2"
        answer = driver.answer(steps[2])
        if kind == "apache":
            assert answer == ["the connection is closed"]
            eventually(lambda: not is_listening(driver.port))
            return
        assert value(answer, "error_code") == "42 INVALID_REQUEST"
        after = driver.answer(steps[3])
        assert (value(after, "leader_id"), value(after, "leader_epoch")) == ("2", "4")
