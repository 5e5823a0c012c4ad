"""Share groups and streams groups in the testing kit: listed, disturbed, timed by the clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest
from confluent_kafka import ShareConsumer

from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.protocol.raw_client import BlockingClient
    from wirebroker.testing import Broker

    Heartbeat = Callable[[BlockingClient, int], Any]

PATIENCE_S: Final = 30.0
GROUP_RESOURCE, SET = 32, 0
ACCEPT: Final = 1
TASKS: Final[dict[str, Any]] = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}


def share_heartbeat(client: BlockingClient, epoch: int) -> Any:
    request: dict[str, Any] = {"group_id": "shares", "member_id": "m", "member_epoch": epoch}
    if epoch == 0:
        request["subscribed_topic_names"] = ["orders"]
    return client.ask(ApiKey.SHARE_GROUP_HEARTBEAT, 1, request)


def streams_heartbeat(client: BlockingClient, epoch: int) -> Any:
    request: dict[str, Any] = {"group_id": "streams", "member_id": "m", "member_epoch": epoch}
    if epoch == 0:
        copartitioned = [{"source_topics": [0]}]
        subtopology = {
            "subtopology_id": "0",
            "source_topics": ["orders"],
            "copartition_groups": copartitioned,
        }
        request |= TASKS | {"rebalance_timeout_ms": 60_000, "process_id": "p", "client_tags": []}
        request["topology"] = {"epoch": 0, "subtopologies": [subtopology]}
    return client.ask(ApiKey.STREAMS_GROUP_HEARTBEAT, 0, request)


HEARTBEATS: Final[dict[str, Heartbeat]] = {
    "SHARE_GROUP_HEARTBEAT": share_heartbeat,
    "STREAMS_GROUP_HEARTBEAT": streams_heartbeat,
}
KINDS: Final = [
    pytest.param(share_heartbeat, "shares", id="share"),
    pytest.param(streams_heartbeat, "streams", id="streams"),
]


class ShareMember:
    """A member that fetches and acknowledges in one session."""

    def __init__(self, client: BlockingClient, broker: Broker, name: str) -> None:
        self.client = client
        self.name = name
        self.epoch = 0
        request = {"topics": [{"name": "orders"}], "allow_auto_topic_creation": False}
        self.topic_id = client.ask(ApiKey.METADATA, 12, request).topics[0].topic_id

    def ask(self, key: ApiKey, batches: list[tuple[int, int]], **fields: Any) -> Any:
        names = ("first_offset", "last_offset", "acknowledge_types")
        acknowledged = [dict(zip(names, (*batch, [ACCEPT]), strict=True)) for batch in batches]
        partition = {"partition_index": 0, "acknowledgement_batches": acknowledged}
        request = {
            "group_id": "shares",
            "member_id": self.name,
            "share_session_epoch": self.epoch,
            "topics": [{"topic_id": self.topic_id, "partitions": [partition]}],
            **fields,
        }
        response = self.client.ask(key, 1, request)
        if response.error_code == ErrorCode.NONE:
            self.epoch += 1
        return response

    def fetch(self, *batches: tuple[int, int]) -> Any:
        """Return the response for the partition, or the whole one if that has an error."""
        response = self.ask(
            ApiKey.SHARE_FETCH,
            [*batches],
            max_wait_ms=10_000,
            min_bytes=1,
            max_bytes=1 << 20,
            max_records=100,
            batch_size=100,
        )
        return response if response.error_code else response.responses[0].partitions[0]

    def acknowledge(self, *batches: tuple[int, int]) -> Any:
        response = self.ask(ApiKey.SHARE_ACKNOWLEDGE, [*batches])
        return response if response.error_code else response.responses[0].partitions[0]

    def acquired(self) -> list[tuple[int, int, int]]:
        return [
            (row.first_offset, row.last_offset, row.delivery_count)
            for row in self.fetch().acquired_records
        ]


def read_from_the_start(client: BlockingClient) -> None:
    """Let the group `shares` begin at the first record."""
    config = {"name": "share.auto.offset.reset", "config_operation": SET, "value": "earliest"}
    resource = {"resource_type": GROUP_RESOURCE, "resource_name": "shares", "configs": [config]}
    request = {"resources": [resource], "validate_only": False}
    assert client.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request).responses[0].error_code == 0


@pytest.fixture
def member(broker: Broker, client: BlockingClient) -> ShareMember:
    """Return a member of a share group whose topic has two records."""
    broker.create_topic("orders")
    broker.produce("orders", "one")
    broker.produce("orders", "two")
    read_from_the_start(client)
    assert share_heartbeat(client, 0).error_code == 0
    return ShareMember(client, broker, "m")


def test_groups_are_listed_by_their_kinds(broker: Broker, client: BlockingClient) -> None:
    broker.create_topic("orders")
    for heartbeat in (share_heartbeat, streams_heartbeat):
        assert heartbeat(client, 0).error_code == 0
    assert [(group.name, group.kind) for group in broker.groups()] == [
        ("shares", "share"),
        ("streams", "streams"),
    ]


@pytest.mark.parametrize(("heartbeat", "group"), KINDS)
def test_clock_ends_sessions(
    broker: Broker, client: BlockingClient, heartbeat: Heartbeat, group: str
) -> None:
    broker.create_topic("orders")
    epoch = heartbeat(client, 0).member_epoch
    broker.clock.advance(seconds=40)
    answer = heartbeat(client, epoch)
    assert answer.error_code == 0
    broker.clock.advance(seconds=46)
    assert [(found.name, found.state) for found in broker.groups()] == [(group, "Empty")]
    assert heartbeat(client, answer.member_epoch).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_clock_ends_locks_of_acquired_records(member: ShareMember, broker: Broker) -> None:
    assert member.acquired() == [(0, 1, 1)]
    assert member.acknowledge((0, 0)).error_code == 0
    broker.clock.advance(seconds=31)
    assert member.acknowledge((1, 1)).error_code == ErrorCode.INVALID_RECORD_STATE
    assert member.acquired() == [(1, 1, 2)]


@pytest.mark.parametrize("api", HEARTBEATS)
def test_faults_disturb_heartbeats(broker: Broker, client: BlockingClient, api: str) -> None:
    heartbeat = HEARTBEATS[api]
    broker.create_topic("orders")
    with broker.faults.error(api, "COORDINATOR_NOT_AVAILABLE").times(1) as fault:
        assert heartbeat(client, 0).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert heartbeat(client, 0).error_code == 0
        assert fault.acted == 1


@pytest.mark.parametrize(
    ("api", "request_body"),
    [
        ("SHARE_GROUP_DESCRIBE", {"group_ids": ["shares"]}),
        ("STREAMS_GROUP_DESCRIBE", {"group_ids": ["streams"]}),
        ("DESCRIBE_SHARE_GROUP_OFFSETS", {"groups": [{"group_id": "shares", "topics": None}]}),
    ],
)
def test_faults_disturb_descriptions(
    broker: Broker, client: BlockingClient, api: str, request_body: dict[str, Any]
) -> None:
    version = 1 if api == "SHARE_GROUP_DESCRIBE" else 0
    with broker.faults.error(api, "GROUP_AUTHORIZATION_FAILED"):
        answer = client.ask(ApiKey[api], version, request_body)
    assert answer.groups[0].error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED


def test_faults_of_share_fetches_are_in_kafkas_fields(member: ShareMember, broker: Broker) -> None:
    """An error of a partition concerns its acknowledgements too; one of the session, all."""
    assert member.acquired() == [(0, 1, 1)]
    with broker.faults.error("SHARE_FETCH", "NOT_LEADER_OR_FOLLOWER", topic="orders"):
        result = member.fetch((0, 0))
    assert result.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert result.acknowledge_error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    member.epoch -= 1  # the broker has not seen the request
    with broker.faults.error("SHARE_FETCH", "INVALID_RECORD_STATE"):
        result = member.fetch((0, 0))
    assert result.error_code == ErrorCode.NONE
    assert result.acknowledge_error_code == ErrorCode.INVALID_RECORD_STATE
    member.epoch -= 1
    with broker.faults.error("SHARE_FETCH", "SHARE_SESSION_NOT_FOUND"):
        assert member.fetch().error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    broker.produce("orders", "three")
    assert member.acquired() == [(2, 2, 1)]


@pytest.mark.parametrize("error", ["INVALID_RECORD_STATE", "NOT_LEADER_OR_FOLLOWER"])
def test_faults_refuse_acknowledgements(member: ShareMember, broker: Broker, error: str) -> None:
    assert member.acquired() == [(0, 1, 1)]
    with broker.faults.error("SHARE_ACKNOWLEDGE", error):
        assert member.acknowledge((0, 1)).error_code == ErrorCode[error]
    member.epoch -= 1
    assert member.acknowledge((0, 1)).error_code == 0


@pytest.mark.parametrize(
    "error", ["NOT_LEADER_OR_FOLLOWER", "SHARE_SESSION_NOT_FOUND", "UNKNOWN_TOPIC_OR_PARTITION"]
)
def test_share_consumer_gets_its_record_after_faults(
    broker: Broker, client: BlockingClient, error: str
) -> None:
    broker.create_topic("orders")
    read_from_the_start(client)
    broker.produce("orders", "one")
    fault = broker.faults.error("SHARE_FETCH", error).times(1)
    config = broker.client_config("confluent") | {
        "group.id": "shares",
        "share.acknowledgement.mode": "explicit",
    }
    with ShareConsumer(config) as consumer:
        consumer.subscribe(["orders"])
        messages: list[Any] = []
        while not messages:
            messages = [each for each in consumer.poll(PATIENCE_S) if each.error() is None]
        assert [message.value() for message in messages] == [b"one"]
        consumer.acknowledge(messages[0])
        assert list(consumer.commit_sync(PATIENCE_S).values()) == [None]
    assert fault.acted == 1
