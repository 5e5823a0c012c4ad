"""`wirebroker group …` against a broker, with a kafka-python consumer as member."""

from __future__ import annotations

import contextlib

import pytest
from kafka import KafkaConsumer

from wirebroker.client.groups.consumer_protocol import assignment_of

PATIENCE_MS = 30_000


@contextlib.contextmanager
def member(verbs, topic, group):
    """Join a group, read three records, commit, and stay a member."""
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=verbs.bootstrap,
        group_id=group,
        client_id="reader",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_poll_records=1,
        consumer_timeout_ms=PATIENCE_MS,
    )
    for _ in range(3):
        next(consumer)
    consumer.commit()
    try:
        yield
    finally:
        consumer.close(autocommit=False)


@pytest.fixture
def read(verbs, request):
    """Create a topic with five records, three of which a group of that name has read."""
    name = f"read-{request.node.name}"
    verbs.do("topic", "create", name)
    verbs.feed(b"0\n1\n2\n3\n4\n", "produce", name)
    with member(verbs, name, name):
        pass
    return name


def committed(verbs, name):
    (found,) = verbs.json("group", "describe", name)
    return [each["committed"] for each in found["partitions"]]


def test_groups_are_listed(verbs, read):
    rows = {each["name"]: each for each in verbs.json("group", "list")}
    assert rows[read] == {
        "name": read,
        "state": "Empty",
        "kind": "classic",
        "protocol": "consumer",
    }
    assert [read, "Empty", "classic", "consumer"] in verbs.do("group", "list").rows


def test_members_are_shown_with_what_they_read(verbs):
    verbs.do("topic", "create", "watched")
    verbs.feed(b"0\n1\n2\n3\n4\n", "produce", "watched")
    with member(verbs, "watched", "watchers"):
        (found,) = verbs.json("group", "describe", "watchers")
        lines = verbs.do("group", "describe", "watchers").lines
        moved = verbs.run("group", "seek", "watchers", "--to", "start", "--yes")
        gone = verbs.run("group", "delete", "watchers", "--yes")
    assert (found["state"], found["assignor"]) == ("Stable", "range")
    (one,) = found["members"]
    assert (one["client_id"], one["host"]) == ("reader", "127.0.0.1")
    assert one["partitions"] == [{"topic": "watched", "partition": 0}]
    assert lines[0] == "watchers  Stable, 1 member, range"
    assert lines[2].split() == ["watched", "0", "3", "5", "2", "reader", "127.0.0.1"]
    for said in (moved, gone):
        assert said.status == 1
        assert "the group has members; stop its consumers first" in said.err


def test_a_groups_lag(verbs, read):
    (row,) = verbs.json("group", "lag", read)
    assert row == {"group": read, "topic": read, "partitions": 1, "lag": 2, "most": 2}
    assert row in verbs.json("group", "lag")


@pytest.mark.parametrize(
    ("flags", "goal"),
    [
        (["--to", "start"], 0),
        (["--to", "end"], 5),
        (["--to", "4"], 4),
        (["--to", "9"], 5),
        (["--to-time", "1h"], 0),
        (["--by", "-2"], 1),
        (["--by", "7"], 5),
    ],
    ids=str,
)
def test_a_group_is_moved_with_yes_alone(verbs, flags, goal):
    name = f"moved{'-'.join(flags)}"
    verbs.do("topic", "create", name)
    verbs.feed(b"0\n1\n2\n3\n4\n", "produce", name)
    verbs.do("group", "seek", name, "--to", "3", "-t", name, "--yes")
    would = verbs.do("group", "seek", name, *flags)
    assert would.rows == [[name, "0", "3", str(goal)]]
    assert "add --yes" in would.err
    assert committed(verbs, name) == [3]
    assert verbs.do("group", "seek", name, *flags, "--yes").err == ""
    assert committed(verbs, name) == [goal]


def test_some_partitions_are_moved(verbs):
    verbs.do("topic", "create", "three", "-p", "3")
    verbs.do("group", "seek", "some", "--to", "end", "-t", "three", "-p", "0,2", "--yes")
    (found,) = verbs.json("group", "describe", "some")
    assert [each["partition"] for each in found["partitions"]] == [0, 2]
    assert found["members"] == []


def test_a_group_is_deleted_with_yes_alone(verbs, read):
    assert verbs.do("group", "delete", read).rows == [[read, "Empty", "0", "1"]]
    assert committed(verbs, read) == [3]
    assert verbs.do("group", "delete", read, "--yes").out == f"{read}: deleted\n"
    assert verbs.run("group", "describe", read).status == 1


def test_commits_for_a_topic_that_is_gone_are_shown(verbs, read):
    verbs.do("topic", "create", "gone")
    verbs.do("group", "seek", read, "--to", "end", "-t", "gone", "--yes")
    verbs.do("topic", "delete", "gone", "--yes")
    (found,) = verbs.json("group", "describe", read)
    assert read in [each["topic"] for each in found["partitions"]]
    assert [each["topic"] for each in verbs.json("group", "lag", read)] == [read]


def test_a_name_that_is_nearly_right_is_answered_with_the_right_one(verbs, read):
    said = verbs.run("group", "describe", f"{read}x")
    assert (said.status, said.out) == (1, "")
    assert said.err == f"wirebroker: there is no group {read}x; did you mean {read}?\n"
    assert verbs.run("group", "lag", f"{read}x").status == 1
    assert verbs.run("group", "delete", f"{read}x").status == 1


def test_mistakes_in_the_arguments(verbs):
    assert verbs.run("group", "seek", "g").status == 2
    assert verbs.run("group", "seek", "g", "--to", "start", "--by", "1").status == 2
    assert verbs.run("group", "seek", "g", "--to", "middle").status == 2
    assert verbs.run("group", "seek", "g", "--to", "start", "-p", "0").status == 2
    said = verbs.run("group", "seek", "nobody", "--to", "start")
    assert said.err.endswith("group nobody has no committed offsets: name a topic with --topic\n")


@pytest.mark.parametrize("data", [b"", b"\0\1", b"\0\0\0\0\0\1\xff\xff", b"\0\0\0\0\0\1\0\1\xff"])
def test_what_is_no_assignment_has_no_partitions(data):
    assert assignment_of(data) == []
