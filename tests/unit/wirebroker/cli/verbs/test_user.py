"""`wirebroker user …` against a broker."""

from __future__ import annotations


def test_users_are_created_changed_and_deleted(verbs):
    result = verbs.feed(b"secret-1\n", "user", "set", "alice")
    assert (result.status, result.out) == (0, "user alice logs in by SCRAM-SHA-512\n")
    flags = ("--mechanism", "SCRAM-SHA-256", "--iterations", "8192")
    assert verbs.feed(b"secret-2", "user", "set", "alice", *flags).status == 0
    assert verbs.json("user", "list", "alice", "nobody") == [
        {"name": "alice", "mechanism": "SCRAM-SHA-256", "iterations": 8192},
        {"name": "alice", "mechanism": "SCRAM-SHA-512", "iterations": 4096},
    ]
    verbs.do("user", "delete", "alice", "--mechanism", "SCRAM-SHA-256")
    assert [credential["mechanism"] for credential in verbs.json("user", "list")] == [
        "SCRAM-SHA-512"
    ]
    assert verbs.run("user", "delete", "alice", "--mechanism", "SCRAM-SHA-256").status == 1
    assert verbs.do("user", "delete", "alice").out == "user alice is deleted\n"
    assert verbs.json("user", "list") == []


def test_errors_are_reported_without_passwords(verbs):
    assert verbs.feed(b"", "user", "set", "alice").status == 2
    assert verbs.run("user", "delete", "bob").err == "wirebroker: there is no user bob\n"
    result = verbs.feed(b"hunter2\n", "user", "set", "")
    assert result.status == 1
    assert "hunter2" not in result.out + result.err
