"""The handlers of the group APIs: versions, and requests that reach no group."""

import importlib

import pytest

from tests.support.coordinators.kit import topic, topic_id
from tests.unit.wirebroker.api.api_kit import answer, answer_soon
from tests.unit.wirebroker.coordination.group_server_kit import (
    ListPartition,
    commit_batch,
    find_coordinator,
    group_broker,
    turns,
)
from wirebroker.codecs.api_keys import API_VERSIONS, ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.groups.partitions import CONSUMER_OFFSETS

HANDLERS = (
    "delete_groups",
    "describe_groups",
    "find_coordinator",
    "heartbeat",
    "join_group",
    "leave_group",
    "list_groups",
    "offset_commit",
    "offset_delete",
    "offset_fetch",
    "sync_group",
)
for each in HANDLERS:
    importlib.import_module(f"wirebroker.api.groups.{each}")

RANGE = [{"name": "range", "metadata": b"s"}]


def versions(key):
    version_range = API_VERSIONS[key]
    return range(version_range.min_version, version_range.max_version + 1)


def join_body(version, **fields):
    body = {
        "group_id": "g",
        "session_timeout_ms": 10_000,
        "member_id": "",
        "protocol_type": "consumer",
        "protocols": RANGE,
        **fields,
    }
    if version >= 1:
        body["rebalance_timeout_ms"] = 60_000
    return body


@pytest.mark.parametrize("version", versions(ApiKey.JOIN_GROUP))
def test_a_session_timeout_out_of_bounds_is_refused(version):
    for timeout_ms in (5_999, 1_800_001):
        body = join_body(version, session_timeout_ms=timeout_ms, member_id="m")
        response = answer(group_broker(), ApiKey.JOIN_GROUP, version, **body)
        assert response.error_code == ErrorCode.INVALID_SESSION_TIMEOUT
        assert response.member_id == "m"
        assert response.generation_id == -1
        assert response.protocol_name == (None if version >= 7 else "")


@pytest.mark.parametrize("version", versions(ApiKey.JOIN_GROUP))
async def test_first_member_joins_and_leads_the_group(version):
    broker = group_broker()
    body = join_body(version)
    if version >= 4:
        response = await answer_soon(broker, ApiKey.JOIN_GROUP, version, **body)
        assert response.error_code == ErrorCode.MEMBER_ID_REQUIRED
        body["member_id"] = response.member_id
    response = await answer_soon(broker, ApiKey.JOIN_GROUP, version, **body)
    assert response.error_code == ErrorCode.NONE
    assert response.generation_id == 1
    assert response.leader == response.member_id == "client-uuid1"
    assert response.protocol_name == "range"
    assert response.protocol_type == ("consumer" if version >= 7 else None)
    assert response.members[0].metadata == b"s"


@pytest.mark.parametrize(
    ("key", "body"),
    [
        (ApiKey.JOIN_GROUP, {"session_timeout_ms": 10_000}),
        (ApiKey.SYNC_GROUP, {"protocol_type": "consumer", "protocol_name": "range"}),
        (ApiKey.HEARTBEAT, {}),
        (ApiKey.LEAVE_GROUP, {}),
        (ApiKey.OFFSET_DELETE, {}),
    ],
)
def test_an_empty_group_id_is_invalid_for_members(key, body):
    version = API_VERSIONS[key].max_version
    response = answer(group_broker(), key, version, group_id="", **body)
    assert response.error_code == ErrorCode.INVALID_GROUP_ID


def test_sync_needs_protocol_type_and_name_from_v5_on():
    broker = group_broker()
    response = answer(broker, ApiKey.SYNC_GROUP, 5, group_id="g", member_id="m")
    assert response.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    response = answer(broker, ApiKey.SYNC_GROUP, 4, group_id="g", member_id="m")
    assert response.error_code == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", versions(ApiKey.HEARTBEAT))
async def test_heartbeats_succeed_while_the_group_is_loading(version):
    broker = group_broker(partitions={0: ListPartition([commit_batch(("g", 0, 1))])})
    response = await answer_soon(broker, ApiKey.HEARTBEAT, version, group_id="g", member_id="m")
    assert response.error_code == ErrorCode.NONE
    body = join_body(0)
    response = await answer_soon(broker, ApiKey.JOIN_GROUP, 0, **body)
    assert response.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    response = await answer_soon(broker, ApiKey.LIST_GROUPS, 5)
    assert response.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    await broker.groups.stop()


@pytest.mark.parametrize("version", versions(ApiKey.LEAVE_GROUP))
def test_leaving_an_unknown_group(version):
    broker = group_broker()
    if version < 3:
        response = answer(broker, ApiKey.LEAVE_GROUP, version, group_id="g", member_id="m")
        assert response.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    else:
        members = [{"member_id": "m", "group_instance_id": "i"}]
        response = answer(broker, ApiKey.LEAVE_GROUP, version, group_id="g", members=members)
        assert response.error_code == ErrorCode.NONE
        assert response.members[0].error_code == ErrorCode.UNKNOWN_MEMBER_ID
        assert response.members[0].group_instance_id == "i"


# -- FindCoordinator --


@pytest.mark.parametrize("version", versions(ApiKey.FIND_COORDINATOR))
async def test_first_coordinator_lookup_creates_the_offsets_topic(version):
    broker = group_broker(partitions={})
    response = await find_coordinator(broker, version, "g", "h")
    for coordinator in [response] if version < 4 else response.coordinators:
        assert coordinator.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert (coordinator.node_id, coordinator.host, coordinator.port) == (-1, "", -1)
    await turns()
    assert CONSUMER_OFFSETS in broker.metadata.image.topics
    response = await find_coordinator(broker, version, "g", "h")
    for coordinator in [response] if version < 4 else response.coordinators:
        assert coordinator.error_code == ErrorCode.NONE
        assert coordinator.node_id == 1


@pytest.mark.parametrize(
    ("version", "key_type", "error"),
    [
        (5, 2, ErrorCode.INVALID_REQUEST),
        (6, 2, ErrorCode.INVALID_REQUEST),
        (6, 3, ErrorCode.INVALID_REQUEST),
    ],
)
async def test_other_coordinator_types_are_not_available(version, key_type, error):
    response = await find_coordinator(group_broker(), version, "g", key_type=key_type)
    assert (response if version < 4 else response.coordinators[0]).error_code == error


@pytest.mark.parametrize(
    "key", ["g:AAAAAAAAAAAAAAAAAAAAAQ:x", "g:AAAA:0", " :AAAAAAAAAAAAAAAAAAAAAQ:0"]
)
async def test_a_key_of_share_groups_names_group_topic_id_and_partition(key):
    response = await find_coordinator(group_broker(), 6, key, key_type=2)
    assert response.coordinators[0].error_code == ErrorCode.INVALID_REQUEST


# -- offsets --

TOPIC_ID = topic_id(1)


def with_topic():
    return group_broker(*topic("t", 1, 2))


def commit_body(version, *topics, **fields):
    name = "topic_id" if version >= 10 else "name"
    return {
        "group_id": "g",
        "topics": [
            {
                name: topic,
                "partitions": [
                    {"partition_index": index, "committed_offset": 5, "committed_metadata": "m"}
                    for index in partitions
                ],
            }
            for topic, *partitions in topics
        ],
        **fields,
    }


def errors(response):
    return [
        (topic.name or topic.topic_id, partition.partition_index, ErrorCode(partition.error_code))
        for topic in response.topics
        for partition in topic.partitions
    ]


@pytest.mark.parametrize("version", versions(ApiKey.OFFSET_COMMIT))
async def test_committed_offset_is_fetched(version):
    broker = with_topic()
    name = TOPIC_ID if version >= 10 else "t"
    body = commit_body(version, (name, 0))
    response = await answer_soon(broker, ApiKey.OFFSET_COMMIT, version, **body)
    assert errors(response) == [(name, 0, ErrorCode.NONE)]
    for fetch_version in versions(ApiKey.OFFSET_FETCH):
        response = await answer_soon(
            broker, ApiKey.OFFSET_FETCH, fetch_version, **fetch_body(fetch_version)
        )
        topics = response.topics if fetch_version < 8 else response.groups[0].topics
        offsets = [partition.committed_offset for partition in topics[0].partitions]
        assert offsets == [5, -1]


def fetch_body(version, **fields):
    topic: dict[str, object] = {"partition_indexes": [0, 1]}
    topic |= {"topic_id": TOPIC_ID} if version >= 10 else {"name": "t"}
    group = {"group_id": "g", "topics": [topic], **fields}
    return group if version < 8 else {"groups": [group]}


async def test_partitions_that_do_not_exist_are_refused_and_the_others_committed():
    broker = with_topic()
    body = commit_body(9, ("nowhere", 0), ("t", 7, 1))
    response = await answer_soon(broker, ApiKey.OFFSET_COMMIT, 9, **body)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert errors(response) == [
        ("nowhere", 0, unknown),
        ("t", 7, unknown),
        ("t", 1, ErrorCode.NONE),
    ]
    body = commit_body(10, (b"x" * 16, 0), (TOPIC_ID, 0))
    response = await answer_soon(broker, ApiKey.OFFSET_COMMIT, 10, **body)
    assert errors(response) == [
        (b"x" * 16, 0, ErrorCode.UNKNOWN_TOPIC_ID),
        (TOPIC_ID, 0, ErrorCode.NONE),
    ]


@pytest.mark.parametrize("version", versions(ApiKey.OFFSET_FETCH))
async def test_many_offsets_are_committed_and_looked_up_in_parts(version, monkeypatch):
    monkeypatch.setattr("wirebroker.api.groups.chunked_commit._AT_ONCE", 1)
    monkeypatch.setattr("wirebroker.api.groups.offset_fetch._AT_ONCE", 1)

    broker = with_topic()
    commit_version = version if version >= 9 else 2
    name = TOPIC_ID if version >= 10 else "t"
    body = commit_body(commit_version, (name, 0, 1))
    response = await answer_soon(broker, ApiKey.OFFSET_COMMIT, commit_version, **body)
    assert errors(response) == [(name, 0, ErrorCode.NONE), (name, 1, ErrorCode.NONE)]
    assert len(response.topics) == 1
    for topics in ({}, {"topics": None}) if version >= 2 else ({},):
        body = fetch_body(version, **topics)
        response = await answer_soon(broker, ApiKey.OFFSET_FETCH, version, **body)
        [topic] = response.topics if version < 8 else response.groups[0].topics
        assert [partition.committed_offset for partition in topic.partitions] == [5, 5]


async def test_group_error_is_reported_for_each_part(monkeypatch):
    monkeypatch.setattr("wirebroker.api.groups.chunked_commit._AT_ONCE", 1)
    body = commit_body(9, ("t", 0, 1), member_id="m", generation_id_or_member_epoch=3)
    response = await answer_soon(with_topic(), ApiKey.OFFSET_COMMIT, 9, **body)
    unknown = ErrorCode.GROUP_ID_NOT_FOUND
    assert errors(response) == [("t", 0, unknown), ("t", 1, unknown)]


def test_group_error_is_reported_for_each_partition():
    body = commit_body(9, ("t", 0, 1), member_id="m", generation_id_or_member_epoch=3)
    response = answer(with_topic(), ApiKey.OFFSET_COMMIT, 9, **body)
    assert {error for _, _, error in errors(response)} == {ErrorCode.GROUP_ID_NOT_FOUND}


async def test_all_topics_are_fetched_and_unknown_ones_refused():
    broker = with_topic()
    await answer_soon(broker, ApiKey.OFFSET_COMMIT, 9, **commit_body(9, ("t", 1)))
    response = await answer_soon(broker, ApiKey.OFFSET_FETCH, 7, group_id="g", topics=None)
    assert [topic.name for topic in response.topics] == ["t"]
    groups = [{"group_id": "g", "topics": None}, {"group_id": "other", "topics": None}]
    response = await answer_soon(broker, ApiKey.OFFSET_FETCH, 10, groups=groups)
    assert [len(group.topics) for group in response.groups] == [1, 0]
    assert response.groups[0].topics[0].topic_id == TOPIC_ID
    requested = [{"topic_id": b"x" * 16, "partition_indexes": [0]}]
    by_id = [{"group_id": "g", "topics": requested}]
    response = await answer_soon(broker, ApiKey.OFFSET_FETCH, 10, groups=by_id)
    [partition] = response.groups[0].topics[0].partitions
    assert partition.error_code == ErrorCode.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize("version", versions(ApiKey.OFFSET_FETCH))
def test_not_coordinator_error_is_placed_by_version(version):
    broker = group_broker(partitions={})
    response = answer(broker, ApiKey.OFFSET_FETCH, version, **fetch_body(version))
    error = ErrorCode.NOT_COORDINATOR
    if version == 1:
        assert [partition.error_code for partition in response.topics[0].partitions] == [
            error,
            error,
        ]
    else:
        assert (response if version < 8 else response.groups[0]).error_code == error


async def test_an_offset_is_deleted():
    broker = with_topic()
    await answer_soon(broker, ApiKey.OFFSET_COMMIT, 9, **commit_body(9, ("t", 0)))
    partitions = [{"partition_index": index} for index in (0, 7)]
    topics = [{"name": "t", "partitions": partitions}]
    response = await answer_soon(broker, ApiKey.OFFSET_DELETE, 0, group_id="g", topics=topics)
    assert errors_by_index(response) == {
        0: ErrorCode.NONE,
        7: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    [shard] = broker.groups.shards()
    assert shard.offsets.count == 0


def errors_by_index(response):
    return {
        partition.partition_index: partition.error_code
        for partition in response.topics[0].partitions
    }


# -- administration --


@pytest.mark.parametrize("version", versions(ApiKey.DESCRIBE_GROUPS))
async def test_groups_are_described_in_the_order_asked(version):
    broker = with_topic()
    await answer_soon(broker, ApiKey.OFFSET_COMMIT, 9, **commit_body(9, ("t", 0)))
    body = {"include_authorized_operations": True} if version >= 3 else {}
    response = await answer_soon(
        broker, ApiKey.DESCRIBE_GROUPS, version, groups=["other", "g"], **body
    )
    other, group = response.groups
    assert other.group_state == "Dead"
    expected = ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else ErrorCode.NONE
    assert other.error_code == expected
    assert (group.group_id, group.group_state) == ("g", "Empty")
    if version >= 3:
        assert group.authorized_operations == 3400


@pytest.mark.parametrize("version", versions(ApiKey.LIST_GROUPS))
async def test_groups_are_listed(version):
    broker = with_topic()
    await answer_soon(broker, ApiKey.OFFSET_COMMIT, 9, **commit_body(9, ("t", 0)))
    response = await answer_soon(broker, ApiKey.LIST_GROUPS, version)
    assert [group.group_id for group in response.groups] == ["g"]
    assert response.groups[0].group_type == ("classic" if version >= 5 else "")


@pytest.mark.parametrize("version", versions(ApiKey.DELETE_GROUPS))
async def test_groups_are_deleted_once_each(version):
    broker = with_topic()
    await answer_soon(broker, ApiKey.OFFSET_COMMIT, 9, **commit_body(9, ("t", 0)))
    names = ["g", "g", "other"]
    response = await answer_soon(broker, ApiKey.DELETE_GROUPS, version, groups_names=names)
    assert [(result.group_id, result.error_code) for result in response.results] == [
        ("g", ErrorCode.NONE),
        ("other", ErrorCode.GROUP_ID_NOT_FOUND),
    ]


def says_much(size, group_id):
    protocols = [{"name": "range", "metadata": b"x" * size}]
    return join_body(3, group_id=group_id, protocols=protocols)


async def test_metadata_of_a_member_is_bounded(monkeypatch):
    monkeypatch.setattr("wirebroker.api.groups.member_memory.FEW_METADATA_BYTES", 10)
    monkeypatch.setattr("wirebroker.api.groups.member_memory.MOST_METADATA_BYTES", 100)
    broker = group_broker()
    await turns()
    for size, expected in ((90, ErrorCode.NONE), (100, ErrorCode.UNKNOWN_SERVER_ERROR)):
        response = await answer_soon(broker, ApiKey.JOIN_GROUP, 3, **says_much(size, f"g-{size}"))
        assert response.error_code == expected
    assert {
        group.group_id for shard in broker.groups.shards() for group in shard.groups.values()
    } == {"g-90"}


async def test_metadata_of_all_members_is_bounded(monkeypatch):
    monkeypatch.setattr("wirebroker.api.groups.member_memory.FEW_METADATA_BYTES", 10)
    monkeypatch.setattr("wirebroker.api.groups.member_memory.MOST_METADATA_BYTES_OF_ALL", 200)
    broker = group_broker()
    await turns()
    joined = await answer_soon(broker, ApiKey.JOIN_GROUP, 3, **says_much(150, "a"))
    assert joined.error_code == ErrorCode.NONE
    refused = await answer_soon(broker, ApiKey.JOIN_GROUP, 3, **says_much(60, "b"))
    assert refused.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    # It replaces the member's earlier metadata.
    body = says_much(150, "a") | {"member_id": joined.member_id}
    rejoined = await answer_soon(broker, ApiKey.JOIN_GROUP, 3, **body)
    assert rejoined.error_code == ErrorCode.NONE
    small = await answer_soon(broker, ApiKey.JOIN_GROUP, 3, **says_much(5, "c"))
    assert small.error_code == ErrorCode.NONE
    members = [{"member_id": joined.member_id}]
    await answer_soon(broker, ApiKey.LEAVE_GROUP, 3, group_id="a", members=members)
    (shard,) = broker.groups.shards()
    assert shard.metadata_bytes == len("range") + 5
    again = await answer_soon(broker, ApiKey.JOIN_GROUP, 3, **says_much(60, "b"))
    assert again.error_code == ErrorCode.NONE
