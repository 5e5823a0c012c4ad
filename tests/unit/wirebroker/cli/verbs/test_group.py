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
    (group,) = verbs.json("group", "describe", name)
    return [partition["committed"] for partition in group["partitions"]]


def test_groups_are_listed(verbs, read):
    rows = {group["name"]: group for group in verbs.json("group", "list")}
    assert rows[read] == {
        "name": read,
        "state": "Empty",
        "kind": "classic",
        "protocol": "consumer",
    }
    assert [read, "Empty", "classic", "consumer"] in verbs.do("group", "list").rows


def test_members_are_shown_with_their_partitions(verbs):
    verbs.do("topic", "create", "watched")
    verbs.feed(b"0\n1\n2\n3\n4\n", "produce", "watched")
    with member(verbs, "watched", "watchers"):
        (group,) = verbs.json("group", "describe", "watchers")
        lines = verbs.do("group", "describe", "watchers").lines
        seek = verbs.run("group", "seek", "watchers", "--to", "start", "--yes")
        deletion = verbs.run("group", "delete", "watchers", "--yes")
    assert (group["state"], group["assignor"]) == ("Stable", "range")
    (only_member,) = group["members"]
    assert (only_member["client_id"], only_member["host"]) == ("reader", "127.0.0.1")
    assert only_member["partitions"] == [{"topic": "watched", "partition": 0}]
    assert lines[0] == "watchers  Stable, 1 member, range"
    assert lines[2].split() == ["watched", "0", "3", "5", "2", "reader", "127.0.0.1"]
    for result in (seek, deletion):
        assert result.status == 1
        assert "the group has members; stop its consumers first" in result.err


def test_group_lag_is_shown(verbs, read):
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
def test_group_offsets_are_moved_only_with_yes(verbs, flags, goal):
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


def test_offsets_of_some_partitions_are_moved(verbs):
    verbs.do("topic", "create", "three", "-p", "3")
    verbs.do("group", "seek", "some", "--to", "end", "-t", "three", "-p", "0,2", "--yes")
    (group,) = verbs.json("group", "describe", "some")
    assert [partition["partition"] for partition in group["partitions"]] == [0, 2]
    assert group["members"] == []


def test_group_is_deleted_only_with_yes(verbs, read):
    assert verbs.do("group", "delete", read).rows == [[read, "Empty", "0", "1"]]
    assert committed(verbs, read) == [3]
    assert verbs.do("group", "delete", read, "--yes").out == f"{read}: deleted\n"
    assert verbs.run("group", "describe", read).status == 1


def test_commits_for_a_deleted_topic_are_shown(verbs, read):
    verbs.do("topic", "create", "gone")
    verbs.do("group", "seek", read, "--to", "end", "-t", "gone", "--yes")
    verbs.do("topic", "delete", "gone", "--yes")
    (group,) = verbs.json("group", "describe", read)
    assert read in [partition["topic"] for partition in group["partitions"]]
    assert [partition["topic"] for partition in verbs.json("group", "lag", read)] == [read]


def test_mistyped_name_gets_a_suggestion(verbs, read):
    result = verbs.run("group", "describe", f"{read}x")
    assert (result.status, result.out) == (1, "")
    assert result.err == f"wirebroker: there is no group {read}x; did you mean {read}?\n"
    assert verbs.run("group", "lag", f"{read}x").status == 1
    assert verbs.run("group", "delete", f"{read}x").status == 1


def test_invalid_arguments_are_refused(verbs):
    assert verbs.run("group", "seek", "g").status == 2
    assert verbs.run("group", "seek", "g", "--to", "start", "--by", "1").status == 2
    assert verbs.run("group", "seek", "g", "--to", "middle").status == 2
    assert verbs.run("group", "seek", "g", "--to", "start", "-p", "0").status == 2
    result = verbs.run("group", "seek", "unknown", "--to", "start")
    assert result.err.endswith("group unknown has no committed offsets: name a topic\n")
    for topic in (":1", "a:", "a:x"):
        assert verbs.run("group", "seek", "g", "--to", "start", "-t", topic).status == 2


def test_partitions_of_topics_are_moved(verbs, read):
    verbs.do("topic", "create", f"{read}-2", "-p", "3")
    flags = ("-t", f"{read}-2:2,0", "-t", read, "--to", "start", "--yes")
    moved = verbs.json("group", "seek", read, *flags)["partitions"]
    assert [(row["topic"], row["partition"]) for row in moved] == [
        (f"{read}-2", 2),
        (f"{read}-2", 0),
        (read, 0),
    ]


def test_members_are_removed_only_with_yes(verbs):
    verbs.do("topic", "create", "left")
    verbs.feed(b"0\n1\n2\n", "produce", "left")
    with member(verbs, "left", "leavers"):
        preview = verbs.do("group", "remove-members", "leavers")
        assert [row[1:] for row in preview.rows] == [["reader", "127.0.0.1"]]
        name = preview.rows[0][0]
        wrong = verbs.run("group", "remove-members", "leavers", "-m", f"{name}x", "--yes")
        assert f"has no member {name}x; did you mean {name}?" in wrong.err
        verbs.do("group", "remove-members", "leavers", "-m", name, "--yes")
    (group,) = verbs.json("group", "describe", "leavers")
    assert group["members"] == []


@pytest.mark.parametrize("data", [b"", b"\0\1", b"\0\0\0\0\0\1\xff\xff", b"\0\0\0\0\0\1\0\1\xff"])
def test_malformed_assignment_has_no_partitions(data):
    assert assignment_of(data) == []
