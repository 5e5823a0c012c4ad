"""`wirebroker quota …` against a broker."""

from __future__ import annotations

import pytest


def test_quotas_are_set_listed_and_removed(verbs):
    result = verbs.do("quota", "set", "--user", "alice", "producer_byte_rate=1048576")
    assert result.out == "user alice: producer_byte_rate=1048576\n"
    both = ("--default-user", "--client-id", "app")
    verbs.do("quota", "set", *both, "request_percentage=12.5", "consumer_byte_rate=2e6")
    assert verbs.json("quota", "list") == [
        {
            "entity": {"client-id": "app", "user": None},
            "values": {"consumer_byte_rate": 2_000_000.0, "request_percentage": 12.5},
        },
        {"entity": {"user": "alice"}, "values": {"producer_byte_rate": 1048576.0}},
    ]
    assert verbs.do("quota", "list", "--user", "alice").lines[1].split()[-2:] == [
        "producer_byte_rate",
        "1048576",
    ]
    verbs.do("quota", "unset", "--user", "alice", "producer_byte_rate")
    verbs.do("quota", "unset", *both, "request_percentage", "consumer_byte_rate")
    assert verbs.json("quota", "list") == []


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (("set", "producer_byte_rate=1"), 2),
        (("set", "--user", "a", "--default-user", "producer_byte_rate=1"), 2),
        (("set", "--user", "a", "producer_byte_rate=many"), 2),
        (("set", "--user", "a", "producer_byte_rate=0"), 1),
        (("set", "--ip", "10.0.0.1", "--user", "a", "connection_creation_rate=1"), 1),
    ],
)
def test_invalid_arguments_are_reported(verbs, arguments, status):
    assert verbs.run("quota", *arguments).status == status
