"""`wirebroker share …`, and `wirebroker group …` of share groups, against a broker."""

from __future__ import annotations

import pytest


@pytest.fixture
def shared(verbs, request):
    """Create a topic with four records, and a share group of that name that starts at the first."""
    name = request.node.name.replace("_", "-")
    verbs.do("topic", "create", name, "-p", "1")
    verbs.feed(b"0\n1\n2\n3\n", "produce", name)
    verbs.do("share", "seek", name, "-t", name, "--to", "start", "--yes")
    return name


def starts(verbs, name):
    (group,) = verbs.json("share", "describe", name)
    return [partition["start"] for partition in group["partitions"]]


def test_share_groups_are_listed_and_described(verbs, shared):
    assert {"name": shared, "state": "Empty"} in verbs.json("share", "list")
    (group,) = verbs.json("share", "describe", shared)
    assert group["members"] == []
    place = {"topic": shared, "partition": 0}
    assert group["partitions"] == [{**place, "start": 0, "lag": 4}]
    assert f"{shared}  Empty" in verbs.do("share", "describe", shared).out
    missing = verbs.run("share", "describe", f"{shared}x")
    assert missing.status == 1
    assert f"did you mean {shared}?" in missing.err


def test_records_are_accepted_released_and_rejected(verbs, shared):
    consume = ("share", "consume", shared, "-g", shared, "-f", r"%o:%s\n")
    assert verbs.do(*consume, "-n", "1").lines == ["0:0"]
    assert verbs.do(*consume, "-n", "1", "--acknowledge", "release").lines == ["1:1"]
    assert verbs.do(*consume, "-n", "1", "--acknowledge", "reject").lines == ["1:1"]
    assert verbs.do(*consume, "-n", "9", "--idle", "0.5").lines == ["2:2", "3:3"]
    assert verbs.do(*consume, "--idle", "0.3").lines == []


def test_share_group_is_moved_only_with_yes(verbs, shared):
    preview = verbs.do("share", "seek", shared, "--to", "end")
    assert "nothing is changed" in preview.err
    assert starts(verbs, shared) == [0]
    moved = verbs.json("share", "seek", shared, "--to", "2", "--yes")
    assert [row["goal"] for row in moved["partitions"]] == [2]
    assert starts(verbs, shared) == [2]
    verbs.do("share", "seek", shared, "-t", shared, "-p", "0", "--to-time", "0", "--yes")
    assert starts(verbs, shared) == [0]
    for flags in (("--to", "end", "--to-time", "0"), (), ("--to", "end", "-p", "0")):
        assert verbs.run("share", "seek", shared, *flags).status == 2


def test_share_group_is_deleted_only_with_yes(verbs, shared):
    assert "would be deleted" in verbs.do("share", "delete", shared).err
    assert verbs.json("share", "delete", shared, "--yes") == {"deleted": [shared]}
    assert verbs.run("share", "describe", shared).status == 1


def test_verbs_for_groups_take_share_groups(verbs, shared):
    listed = {group["name"]: group["kind"] for group in verbs.json("group", "list")}
    assert listed[shared] == "share"
    (group,) = verbs.json("group", "describe", shared)
    assert (group["kind"], group["state"], group["members"]) == ("share", "Empty", [])
    assert [(row["committed"], row["lag"]) for row in group["partitions"]] == [(0, 4)]
    assert [row["lag"] for row in verbs.json("group", "lag", shared)] == [4]
    refused = verbs.run("group", "seek", shared, "--to", "end")
    assert (refused.status, "use `wirebroker share seek`" in refused.err) == (1, True)
    assert verbs.json("group", "delete", shared, "--yes") == {"deleted": [shared]}
