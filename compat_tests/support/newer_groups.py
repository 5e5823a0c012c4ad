"""Groups of KIP-848, KIP-932 and KIP-1071 in every state that Apache Kafka writes to its logs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from compat_tests.clients import java
from compat_tests.support.raw_requests import batch, record
from tests.support.tools.waiting import eventually
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.message import load_message

if TYPE_CHECKING:
    from collections.abc import Callable

    from compat_tests.support.raw_requests import Requests

SETTINGS: Final = {
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    # A snapshot after each two updates.
    "share.coordinator.snapshot.update.records.per.snapshot": "2",
}
# Kafka 4.3 has no version 1 of the latter.
_VERSIONS: Final = {ApiKey.CONSUMER_GROUP_HEARTBEAT: 1, ApiKey.STREAMS_GROUP_HEARTBEAT: 0}
JOINING, LEAVING, LEAVING_FOR_A_WHILE = 0, -1, -2
_WAIT_S: Final = 30.0
_POLL_S: Final = 0.1
_TIMEOUT_MS: Final = 30_000
_SHARED: Final = "shared"


def make_newer_groups(requests: Requests, bootstrap: str) -> None:
    """Make groups of each kind, with members that join, move partitions and leave."""
    requests.create("t", 2)
    requests.ask_until_served(ApiKey.FIND_COORDINATOR, 2, {"key": "any", "key_type": 0})
    _make_consumer_group(requests)
    _upgrade_classic_group(requests)
    _make_streams_group(requests)
    make_share_group(requests, bootstrap)


def make_share_group(requests: Requests, bootstrap: str) -> None:
    """Read the topic `t` by a share group, record by record."""
    resource = ("--entity-type", "groups", "--entity-name", _SHARED)
    earliest = "share.auto.offset.reset=earliest"
    java.run(bootstrap, java.CONFIGS, "--alter", *resource, "--add-config", earliest)
    for number in range(3):
        requests.append("t", batch(record(0, b"k", b"%d" % number)))
        java.run(
            bootstrap,
            "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
            *("--topic", "t", "--group", _SHARED),
            *("--max-messages", "1", "--timeout-ms", "20000"),
        )


def _make_consumer_group(requests: Requests) -> None:
    first = _Member(requests, ApiKey.CONSUMER_GROUP_HEARTBEAT, "consumers", "first")
    topics = {"subscribed_topic_names": ["t"], "topic_partitions": []}
    joined = first.join(**topics, rebalance_timeout_ms=_TIMEOUT_MS, rack_id="r")
    owned = _partitions_of(first, joined)
    second = _Member(requests, ApiKey.CONSUMER_GROUP_HEARTBEAT, "consumers", "second")
    expression = {"subscribed_topic_regex": "t.*", "topic_partitions": []}
    second.join(**expression, rebalance_timeout_ms=_TIMEOUT_MS, instance_id="static")
    # The coordinator matches the expression in another thread, then moves one partition.
    left = first.wait(lambda: first.beat().assignment)
    assert sum(len(each.partitions) for each in left.topic_partitions) < len(owned)
    first.beat(topic_partitions=[each.as_dict() for each in left.topic_partitions])
    second.wait(lambda: _partitions(second.beat().assignment))
    partition = {"partition_index": 0, "committed_offset": 1, "committed_metadata": "note"}
    commit = {
        "group_id": "consumers",
        "generation_id_or_member_epoch": first.epoch,
        "member_id": "first",
        "topics": [{"name": "t", "partitions": [partition]}],
    }
    requests.ask(ApiKey.OFFSET_COMMIT, 9, commit)
    second.leave(LEAVING_FOR_A_WHILE, instance_id="static")
    first.leave(LEAVING)


def _upgrade_classic_group(requests: Requests) -> None:
    """Join a classic group with the consumer protocol, which converts the group."""
    join_classic_group(requests, "upgraded", "t", 2)
    member = _Member(requests, ApiKey.CONSUMER_GROUP_HEARTBEAT, "upgraded", "newer")
    member.join(subscribed_topic_names=["t"], topic_partitions=[], rebalance_timeout_ms=_TIMEOUT_MS)
    member.leave(LEAVING)


def join_classic_group(
    requests: Requests, group: str, topic: str, partitions: int, *, session_ms: int = _TIMEOUT_MS
) -> None:
    """Join a group with the classic protocol, as its only member."""
    subscription = load_message("consumer_protocol_subscription")
    assignment = load_message("consumer_protocol_assignment")
    fields = {"topics": [topic], "owned_partitions": [], "generation_id": -1}
    owned = {"assigned_partitions": [{"topic": topic, "partitions": [*range(partitions)]}]}
    join = {
        "group_id": group,
        "session_timeout_ms": session_ms,
        "rebalance_timeout_ms": session_ms,
        "member_id": "",
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b"\x00\x03" + subscription.encode(3, fields)}],
    }
    member_id = requests.try_ask(ApiKey.JOIN_GROUP, 7, join).member_id
    joined = requests.ask(ApiKey.JOIN_GROUP, 7, {**join, "member_id": member_id})
    sync = {
        "group_id": group,
        "generation_id": joined.generation_id,
        "member_id": member_id,
        "protocol_type": "consumer",
        "protocol_name": "range",
        "assignments": [
            {"member_id": member_id, "assignment": b"\x00\x03" + assignment.encode(3, owned)}
        ],
    }
    requests.ask(ApiKey.SYNC_GROUP, 5, sync)


def _make_streams_group(requests: Requests) -> None:
    changelog = {
        "name": "streams-store-changelog",
        "partitions": 0,
        "replication_factor": 1,
        "topic_configs": [{"key": "cleanup.policy", "value": "compact"}],
    }
    subtopology = {
        "subtopology_id": "0",
        "source_topics": ["t"],
        "state_changelog_topics": [changelog],
        "copartition_groups": [{"source_topics": [0]}],
    }
    tasks: dict[str, Any] = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
    requests.create("streams-store-changelog", 2, {"cleanup.policy": "compact"})
    first, second = (
        _Member(requests, ApiKey.STREAMS_GROUP_HEARTBEAT, "streams", name)
        for name in ("first", "second")
    )
    for member in (first, second):
        member.join(
            **tasks,
            rebalance_timeout_ms=_TIMEOUT_MS,
            topology={"epoch": 0, "subtopologies": [subtopology]},
            process_id=f"process of {member.name}",
            user_endpoint={"host": "localhost", "port": 65535},
            client_tags=[{"key": "zone", "value": "a"}],
        )
    first.wait(lambda: first.beat().active_tasks)
    second.leave(LEAVING)


class _Member:
    """A member that sends heartbeats."""

    def __init__(self, requests: Requests, key: ApiKey, group: str, name: str) -> None:
        self.name = name
        self.epoch = JOINING
        self._requests = requests
        self._key = key
        self._group = group

    def join(self, **fields: Any) -> Any:
        return self.wait(lambda: self._send(JOINING, fields))

    def beat(self, **fields: Any) -> Any:
        response = self._send(self.epoch, fields)
        assert response is not None, "the coordinator must be available after the first heartbeat"
        return response

    def leave(self, epoch: int, **fields: Any) -> None:
        self._send(epoch, fields)

    def wait(self, find: Callable[[], Any]) -> Any:
        """Poll until the result is true, and return it."""
        results: list[Any] = []

        def is_found() -> bool:
            results.append(find())
            return bool(results[-1])

        eventually(is_found, timeout_s=_WAIT_S, poll_s=_POLL_S)
        return results[-1]

    def _send(self, epoch: int, fields: dict[str, Any]) -> Any:
        names = {"group_id": self._group, "member_id": self.name, "member_epoch": epoch}
        response = self._requests.try_ask(self._key, _VERSIONS[self._key], {**names, **fields})
        if response.error_code in {
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
            ErrorCode.NOT_COORDINATOR,
        }:
            return None
        assert response.error_code == ErrorCode.NONE, response
        self.epoch = response.member_epoch
        return response


def _partitions_of(member: _Member, joined: Any) -> list[int]:
    found: list[int] = _partitions(joined.assignment) or member.wait(
        lambda: _partitions(member.beat().assignment)
    )
    return found


def _partitions(assignment: Any) -> list[int]:
    topics = [] if assignment is None else assignment.topic_partitions
    return [number for topic in topics for number in topic.partitions]
