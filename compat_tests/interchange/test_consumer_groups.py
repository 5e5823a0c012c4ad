"""Consumer groups (KIP-848) that both brokers serve in turns, in the middle of a rebalance."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from compat_tests.clients.message import WAIT_S
from compat_tests.interchange.contents import contents_of, types_of_groups
from compat_tests.interchange.shared_folder import SharedFolder, address
from compat_tests.support.raw_requests import Requests, batch, record
from tests.support.tools.waiting import eventually
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from compat_tests.interchange.shared_folder import End

pytestmark = pytest.mark.java

JOINING, LEAVING, LEAVING_FOR_A_WHILE = 0, -1, -2
TIMEOUT_MS = 300_000
# Assignments are computed at once.
SETTINGS = {"group.consumer.assignment.interval.ms": "0"}


@contextlib.contextmanager
def serving(folder: SharedFolder, kind: str, end: End) -> Iterator[tuple[Requests, str]]:
    with (
        folder.run(kind, end) as broker,
        contextlib.closing(Requests(address(broker))) as requests,
    ):
        yield requests, broker.bootstrap


def beat(requests: Requests, member_id: str, epoch: int, **fields: Any) -> Any:
    """Send a heartbeat to the group `members`; return the response, which has no error."""
    request = {"group_id": "members", "member_id": member_id, "member_epoch": epoch, **fields}
    if epoch == JOINING:
        request |= {"rebalance_timeout_ms": TIMEOUT_MS, "topic_partitions": []}
    return requests.ask_until_served(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, request)


def partitions_of(response: Any) -> list[int]:
    topics = response.assignment.topic_partitions
    return sorted(index for topic in topics for index in topic.partitions)


def owned(requests: Requests, *partitions: int) -> list[dict[str, Any]]:
    (topic,) = requests.ask(ApiKey.METADATA, 12, {"topics": [{"name": "t"}]}).topics
    return [{"topic_id": topic.topic_id, "partitions": list(partitions)}]


def described(requests: Requests) -> dict[str, Any]:
    """Return the state of the group, with its members by id."""
    request = {"group_ids": ["members"]}
    answer = requests.ask_until_served(ApiKey.CONSUMER_GROUP_DESCRIBE, 1, request)
    (group,) = answer.groups
    return {
        "state": group.group_state,
        "epochs": (group.group_epoch, group.assignment_epoch),
        **{
            member.member_id: (
                member.instance_id,
                member.member_epoch,
                sorted(member.subscribed_topic_names),
                member.subscribed_topic_regex,
                *(
                    sorted((topic.topic_name, *sorted(topic.partitions)) for topic in topics)
                    for topics in (
                        member.assignment.topic_partitions,
                        member.target_assignment.topic_partitions,
                    )
                ),
            )
            for member in group.members
        },
    }


def commit(requests: Requests, member_id: str, epoch: int, partition: int, offset: int) -> None:
    partitions = [{"partition_index": partition, "committed_offset": offset}]
    request = {
        "group_id": "members",
        "generation_id_or_member_epoch": epoch,
        "member_id": member_id,
        "topics": [{"name": "t", "partitions": partitions}],
    }
    requests.ask_until_served(ApiKey.OFFSET_COMMIT, 9, request)


def read_and_leave(bootstrap: str, expected: int) -> None:
    """Join the group `readers`, read as many records, commit them and leave."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "readers",
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    consumer.subscribe(["^t.*"])
    messages = consumer.consume(expected, WAIT_S)
    assert [message.error() for message in messages] == [None] * expected
    ends: list[TopicPartition] = []
    for message in messages:
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        ends.append(TopicPartition("t", partition, offset + 1))
    consumer.commit(offsets=ends, asynchronous=False)
    consumer.close()


def append_to_all(requests: Requests) -> None:
    for partition in range(4):
        requests.append("t", batch(record(0, b"k", b"v")), partition=partition)


@pytest.mark.parametrize(
    ("maker", "end"),
    [
        ("apache", "kill"),
        pytest.param("wirebroker", "stop", marks=pytest.mark.nightly),
        pytest.param("apache", "stop", marks=pytest.mark.nightly),
        pytest.param("wirebroker", "kill", marks=pytest.mark.nightly),
    ],
)
def test_members_continue_with_other_broker(tmp_path: Path, maker: str, end: End) -> None:
    other = "wirebroker" if maker == "apache" else "apache"
    folder = SharedFolder(tmp_path, settings=SETTINGS)
    with serving(folder, maker, end) as (requests, bootstrap):
        requests.create("t", 4)
        append_to_all(requests)
        requests.ask_until_served(ApiKey.FIND_COORDINATOR, 2, {"key": "any", "key_type": 0})
        read_and_leave(bootstrap, 4)
        joined = beat(requests, "a", JOINING, subscribed_topic_names=["t"])
        assert partitions_of(joined) == [0, 1, 2, 3]
        static = {"instance_id": "i", "subscribed_topic_regex": "t.*"}
        assert partitions_of(beat(requests, "b", JOINING, **static)) == []
        # The regular expression is resolved after the response.
        eventually(lambda: described(requests)["epochs"][0] == 3, timeout_s=WAIT_S, poll_s=0.1)
        commit(requests, "a", joined.member_epoch, 3, 7)
        kept = beat(requests, "a", joined.member_epoch, topic_partitions=owned(requests, *range(4)))
        first_half = partitions_of(kept)
        assert len(first_half) == 2
        before, offsets = described(requests), contents_of(requests).offsets
        assert before["state"] == "Reconciling"
    with serving(folder, other, end) as (requests, bootstrap):
        assert contents_of(requests).offsets == offsets
        assert described(requests) == before
        # The first member gives up two partitions, the second gets them.
        moved_on = beat(
            requests, "a", kept.member_epoch, topic_partitions=owned(requests, *first_half)
        )
        got = beat(requests, "b", 2, instance_id="i", topic_partitions=[])
        assert sorted([*partitions_of(got), *first_half]) == [0, 1, 2, 3]
        commit(requests, "b", got.member_epoch, partitions_of(got)[0], 1)
        assert described(requests)["state"] == "Stable"
        beat(requests, "b", LEAVING_FOR_A_WHILE, instance_id="i")
        before = described(requests)
        append_to_all(requests)
        read_and_leave(bootstrap, 4)
        offsets = contents_of(requests).offsets
    with serving(folder, maker, "stop") as (requests, bootstrap):
        assert contents_of(requests).offsets == offsets
        assert described(requests) == before
        returned = beat(requests, "c", JOINING, **static)
        assert partitions_of(returned) == partitions_of(got)
        beat(requests, "a", moved_on.member_epoch)
        beat(requests, "a", LEAVING)
        beat(requests, "c", LEAVING, instance_id="i")
        assert described(requests)["state"] == "Empty"
        append_to_all(requests)
        read_and_leave(bootstrap, 4)
        requests.ask(ApiKey.DELETE_GROUPS, 2, {"groups_names": ["readers"]})
        # A classic consumer may take over an empty group, with its offsets.
        requests.join_alone("members")
        offsets = contents_of(requests).offsets
    with serving(folder, other, "stop") as (requests, _):
        assert types_of_groups(requests) == {"members": "classic"}
        assert contents_of(requests).offsets == offsets
