"""Share groups (KIP-932) that both brokers serve in turns: members, epochs, offsets."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from compat_tests.clients.message import WAIT_S
from compat_tests.interchange.contents import types_of_groups
from compat_tests.interchange.shared_folder import SharedFolder, address
from compat_tests.support.raw_requests import Requests
from tests.support.tools.waiting import eventually
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from compat_tests.interchange.shared_folder import End

pytestmark = pytest.mark.java

JOINING, LEAVING = 0, -1
# Assignments are computed at once.
SETTINGS = {"group.share.assignment.interval.ms": "0"}
_UPGRADE = 1


@contextlib.contextmanager
def serving(folder: SharedFolder, kind: str, end: End) -> Iterator[Requests]:
    with (
        folder.run(kind, end) as broker,
        contextlib.closing(Requests(address(broker))) as requests,
    ):
        yield requests


def beat(requests: Requests, member_id: str, epoch: int, *names: str) -> Any:
    """Send a heartbeat to the group `shared`; return the response, which has no error."""
    request = {"group_id": "shared", "member_id": member_id, "member_epoch": epoch}
    if names:
        request["subscribed_topic_names"] = list(names)
    return requests.ask_until_served(ApiKey.SHARE_GROUP_HEARTBEAT, 1, request)


def partitions_of(response: Any) -> list[int]:
    topics = response.assignment.topic_partitions
    return sorted(index for topic in topics for index in topic.partitions)


def described(requests: Requests) -> dict[str, Any]:
    """Return the state of the group, with its members by id."""
    answer = requests.ask_until_served(ApiKey.SHARE_GROUP_DESCRIBE, 1, {"group_ids": ["shared"]})
    (group,) = answer.groups
    return {
        "state": group.group_state,
        "epochs": (group.group_epoch, group.assignment_epoch),
        **{
            member.member_id: (
                member.member_epoch,
                sorted(member.subscribed_topic_names),
                sorted(
                    (topic.topic_name, *sorted(topic.partitions))
                    for topic in member.assignment.topic_partitions
                ),
            )
            for member in group.members
        },
    }


def start_offsets(requests: Requests) -> dict[tuple[str, int], int]:
    """Return the start offset of each partition with share state."""
    answer = requests.ask(
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
        0,
        {"groups": [{"group_id": "shared", "topics": None}]},
    )
    return {
        (topic.topic_name, partition.partition_index): partition.start_offset
        for topic in answer.groups[0].topics
        for partition in topic.partitions
    }


def await_state(requests: Requests, count: int) -> None:
    eventually(lambda: len(start_offsets(requests)) == count, timeout_s=WAIT_S, poll_s=0.1)


@pytest.mark.parametrize(
    ("maker", "end"),
    [
        ("wirebroker", "stop"),
        pytest.param("apache", "kill", marks=pytest.mark.nightly),
        pytest.param("apache", "stop", marks=pytest.mark.nightly),
        pytest.param("wirebroker", "kill", marks=pytest.mark.nightly),
    ],
)
def test_members_continue_with_other_broker(tmp_path: Path, maker: str, end: End) -> None:
    other = "wirebroker" if maker == "apache" else "apache"
    folder = SharedFolder(tmp_path, settings=SETTINGS)
    with serving(folder, maker, end) as requests:
        updates = [{"feature": "share.version", "max_version_level": 2, "upgrade_type": _UPGRADE}]
        requests.ask(ApiKey.UPDATE_FEATURES, 2, {"timeout_ms": 30_000, "feature_updates": updates})
        requests.create("t", 2)
        requests.create("u", 1)
        requests.ask_until_served(ApiKey.FIND_COORDINATOR, 2, {"key": "any", "key_type": 0})
        beat(requests, "a", JOINING, "t")
        await_state(requests, 2)
        assert partitions_of(beat(requests, "a", 2)) == [0, 1]
        # The epoch of the new member is the group's; the other has not noticed yet.
        beat(requests, "b", JOINING, "t", "u")
        await_state(requests, 3)
        before, offsets = described(requests), start_offsets(requests)
        assert before["epochs"][0] == 4
    with serving(folder, other, end) as requests:
        assert types_of_groups(requests) == {"shared": "share"}
        assert described(requests) == before
        eventually(lambda: start_offsets(requests) == offsets, timeout_s=WAIT_S, poll_s=0.5)
        # The partition that was initialized last is assigned now.
        got = beat(requests, "b", 4, "t", "u")
        assert len(partitions_of(got)) == 2
        assert len(partitions_of(beat(requests, "a", 3))) == 1
        beat(requests, "a", LEAVING)
        moved = beat(requests, "b", got.member_epoch)
        assert described(requests)["b"][2] == [("t", 0, 1), ("u", 0)]
        before = described(requests)
    with serving(folder, maker, "stop") as requests:
        assert described(requests) == before
        beat(requests, "b", moved.member_epoch)
        beat(requests, "b", LEAVING)
        topics = [{"topic_name": "u"}]
        request = {"group_id": "shared", "topics": topics}
        deleted = requests.ask(ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, request)
        assert [topic.error_code for topic in deleted.responses] == [0]
        partitions = [{"partition_index": 0, "start_offset": 0}]
        request["topics"] = [{"topic_name": "t", "partitions": partitions}]
        requests.ask(ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, request)
        eventually(lambda: start_offsets(requests)["t", 0] == 0, timeout_s=WAIT_S, poll_s=0.1)
        offsets = start_offsets(requests)
        assert offsets == {("t", 0): 0, ("t", 1): -1}
    with serving(folder, other, "stop") as requests:
        assert described(requests)["state"] == "Empty"
        eventually(lambda: start_offsets(requests) == offsets, timeout_s=WAIT_S, poll_s=0.5)
        requests.ask(ApiKey.DELETE_GROUPS, 2, {"groups_names": ["shared"]})
        assert types_of_groups(requests) == {}
    with serving(folder, maker, "stop") as requests:
        requests.ask_until_served(ApiKey.FIND_COORDINATOR, 2, {"key": "any", "key_type": 0})
        assert types_of_groups(requests) == {}
