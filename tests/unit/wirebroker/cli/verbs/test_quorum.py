"""`wirebroker quorum` against a broker with its own controller."""

from __future__ import annotations


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
    assert result.lines[1].split() == ["NODE", "ROLE", "END", "LAG", "LAG-MS"]
    assert result.lines[2].split()[:2] == ["1", "leader"]
