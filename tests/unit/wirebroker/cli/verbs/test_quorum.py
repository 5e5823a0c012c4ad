"""`wirebroker quorum` against a broker with its own controller."""

from __future__ import annotations


def test_the_quorum_is_shown_with_its_leader(verbs):
    found = verbs.json("quorum")
    assert found["leader_id"] == 1
    assert found["high_watermark"] > 0
    (voter,) = found["replicas"]
    assert (voter["node"], voter["role"], voter["lag"]) == (1, "leader", 0)
    assert voter["lag_ms"] == 0


def test_it_is_a_table_for_people(verbs):
    said = verbs.do("quorum")
    assert said.lines[0].startswith("quorum leader 1, epoch ")
    assert said.lines[1].split() == ["NODE", "ROLE", "END", "LAG", "LAG-MS"]
    assert said.lines[2].split()[:2] == ["1", "leader"]
