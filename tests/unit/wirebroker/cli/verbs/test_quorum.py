"""`wirebroker quorum` against a broker with its own controller."""

from __future__ import annotations

import pytest


def test_the_quorum_is_shown_with_its_leader(verbs):
    quorum = verbs.json("quorum")
    assert quorum["leader_id"] == 1
    assert quorum["high_watermark"] > 0
    (voter,) = quorum["replicas"]
    assert (voter["node"], voter["role"], voter["lag"]) == (1, "leader", 0)
    assert voter["lag_ms"] == 0


def test_quorum_is_printed_as_a_table(verbs):
    result = verbs.do("quorum")
    assert result.lines[0].startswith("quorum leader 1, epoch ")
    assert result.lines[1] == "1 voter (1): no controller takes over if it fails"
    assert result.lines[2].split() == ["NODE", "ROLE", "END", "LAG", "LAG-MS", "ENDPOINTS"]
    assert result.lines[3].split()[:2] == ["1", "leader"]
    assert verbs.do("quorum", "describe").lines[0].startswith("quorum leader 1, epoch ")


def test_static_voters_cannot_be_changed(verbs):
    for change in (("add-voter", "2@127.0.0.1:9093"), ("remove-voter", "1")):
        result = verbs.run("quorum", *change, "--yes")
        assert result.status == 1
        assert "run `wirebroker features upgrade kraft.version=1` first" in result.err


def test_a_node_that_is_no_voter_cannot_be_removed(verbs):
    result = verbs.run("quorum", "remove-voter", "7")
    assert (result.status, "controller 7 is not a voter" in result.err) == (1, True)
    result = verbs.run("quorum", "add-voter", "1@127.0.0.1:9093")
    assert (result.status, "controller 1 is a voter already" in result.err) == (1, True)


@pytest.mark.parametrize("text", ["2", "x@h:1", "2@h", "2@h:x", "-1@h:1"])
def test_an_invalid_address_of_a_voter_is_refused(verbs, text):
    result = verbs.run("quorum", "add-voter", "--", text)
    assert (result.status, "write ID@HOST:PORT" in result.err) == (2, True)
