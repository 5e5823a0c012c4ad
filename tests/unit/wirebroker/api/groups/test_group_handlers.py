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
    found = API_VERSIONS[key]
    return range(found.min_version, found.max_version + 1)


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
        found = answer(group_broker(), ApiKey.JOIN_GROUP, version, **body)
        assert found.error_code == ErrorCode.INVALID_SESSION_TIMEOUT
        assert found.member_id == "m"
        assert found.generation_id == -1
        assert found.protocol_name == (None if version >= 7 else "")


@pytest.mark.parametrize("version", versions(ApiKey.JOIN_GROUP))
async def test_a_whole_join(version):
    broker = group_broker()
    body = join_body(version)
    if version >= 4:
        found = await answer_soon(broker, ApiKey.JOIN_GROUP, version, **body)
        assert found.error_code == ErrorCode.MEMBER_ID_REQUIRED
        body["member_id"] = found.member_id
    found = await answer_soon(broker, ApiKey.JOIN_GROUP, version, **body)
    assert found.error_code == ErrorCode.NONE
    assert found.generation_id == 1
    assert found.leader == found.member_id == "client-uuid1"
    assert found.protocol_name == "range"
    assert found.protocol_type == ("consumer" if version >= 7 else None)
    assert found.members[0].metadata == b"s"


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
    found = answer(group_broker(), key, version, group_id="", **body)
    assert found.error_code == ErrorCode.INVALID_GROUP_ID


def test_sync_needs_protocol_type_and_name_from_v5_on():
    broker = group_broker()
    found = answer(broker, ApiKey.SYNC_GROUP, 5, group_id="g", member_id="m")
    assert found.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    found = answer(broker, ApiKey.SYNC_GROUP, 4, group_id="g", member_id="m")
    assert found.error_code == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", versions(ApiKey.HEARTBEAT))
async def test_while_a_group_is_loaded_its_members_are_well(version):
    broker = group_broker(partitions={0: ListPartition([commit_batch(("g", 0, 1))])})
    found = await answer_soon(broker, ApiKey.HEARTBEAT, version, group_id="g", member_id="m")
    assert found.error_code == ErrorCode.NONE
    body = join_body(0)
    found = await answer_soon(broker, ApiKey.JOIN_GROUP, 0, **body)
    assert found.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    found = await answer_soon(broker, ApiKey.LIST_GROUPS, 5)
    assert found.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    await broker.groups.stop()


@pytest.mark.parametrize("version", versions(ApiKey.LEAVE_GROUP))
def test_leaving_an_unknown_group(version):
    broker = group_broker()
    if version < 3:
        found = answer(broker, ApiKey.LEAVE_GROUP, version, group_id="g", member_id="m")
        assert found.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    else:
        members = [{"member_id": "m", "group_instance_id": "i"}]
        found = answer(broker, ApiKey.LEAVE_GROUP, version, group_id="g", members=members)
        assert found.error_code == ErrorCode.NONE
        assert found.members[0].error_code == ErrorCode.UNKNOWN_MEMBER_ID
        assert found.members[0].group_instance_id == "i"


# -- FindCoordinator --


@pytest.mark.parametrize("version", versions(ApiKey.FIND_COORDINATOR))
async def test_the_first_one_who_looks_makes_the_topic(version):
    broker = group_broker(partitions={})
    found = await find_coordinator(broker, version, "g", "h")
    for each in [found] if version < 4 else found.coordinators:
        assert each.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert (each.node_id, each.host, each.port) == (-1, "", -1)
    await turns()
    assert CONSUMER_OFFSETS in broker.metadata.image.topics
    found = await find_coordinator(broker, version, "g", "h")
    for each in [found] if version < 4 else found.coordinators:
        assert each.error_code == ErrorCode.NONE
        assert each.node_id == 1


@pytest.mark.parametrize(
    ("version", "key_type", "error"),
    [
        (5, 2, ErrorCode.INVALID_REQUEST),
        (6, 2, ErrorCode.INVALID_REQUEST),
        (6, 3, ErrorCode.INVALID_REQUEST),
    ],
)
async def test_other_kinds_of_coordinators_are_not_there(version, key_type, error):
    found = await find_coordinator(group_broker(), version, "g", key_type=key_type)
    assert (found if version < 4 else found.coordinators[0]).error_code == error


@pytest.mark.parametrize(
    ("key", "error"),
    [
        ("g:AAAAAAAAAAAAAAAAAAAAAQ:0", ErrorCode.COORDINATOR_NOT_AVAILABLE),
        ("g:AAAAAAAAAAAAAAAAAAAAAQ:0:", ErrorCode.COORDINATOR_NOT_AVAILABLE),
        ("g:AAAAAAAAAAAAAAAAAAAAAQ:x", ErrorCode.INVALID_REQUEST),
        ("g:AAAA:0", ErrorCode.INVALID_REQUEST),
        (" :AAAAAAAAAAAAAAAAAAAAAQ:0", ErrorCode.INVALID_REQUEST),
        ("g:g:AAAAAAAAAAAAAAAAAAAAAQ:0", ErrorCode.INVALID_REQUEST),
    ],
)
async def test_a_key_of_share_groups_names_group_topic_id_and_partition(key, error):
    found = await find_coordinator(group_broker(), 6, key, key_type=2)
    assert found.coordinators[0].error_code == error


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
                name: wanted,
                "partitions": [
                    {"partition_index": index, "committed_offset": 5, "committed_metadata": "m"}
                    for index in partitions
                ],
            }
            for wanted, *partitions in topics
        ],
        **fields,
    }


def errors(found):
    return [
        (each.name or each.topic_id, partition.partition_index, ErrorCode(partition.error_code))
        for each in found.topics
        for partition in each.partitions
    ]


@pytest.mark.parametrize("version", versions(ApiKey.OFFSET_COMMIT))
async def test_a_commit_and_its_fetch(version):
    broker = with_topic()
    name = TOPIC_ID if version >= 10 else "t"
    body = commit_body(version, (name, 0))
    found = await answer_soon(broker, ApiKey.OFFSET_COMMIT, version, **body)
    assert errors(found) == [(name, 0, ErrorCode.NONE)]
    for fetch_version in versions(ApiKey.OFFSET_FETCH):
        found = await answer_soon(
            broker, ApiKey.OFFSET_FETCH, fetch_version, **fetch_body(fetch_version)
        )
        topics = found.topics if fetch_version < 8 else found.groups[0].topics
        offsets = [each.committed_offset for each in topics[0].partitions]
        assert offsets == [5, -1]


def fetch_body(version, **fields):
    asked: dict[str, object] = {"partition_indexes": [0, 1]}
    asked |= {"topic_id": TOPIC_ID} if version >= 10 else {"name": "t"}
    group = {"group_id": "g", "topics": [asked], **fields}
    return group if version < 8 else {"groups": [group]}


async def test_partitions_that_do_not_exist_are_refused_and_the_others_committed():
    broker = with_topic()
    body = commit_body(9, ("nowhere", 0), ("t", 7, 1))
    found = await answer_soon(broker, ApiKey.OFFSET_COMMIT, 9, **body)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert errors(found) == [
        ("nowhere", 0, unknown),
        ("t", 7, unknown),
        ("t", 1, ErrorCode.NONE),
    ]
    body = commit_body(10, (b"x" * 16, 0), (TOPIC_ID, 0))
    found = await answer_soon(broker, ApiKey.OFFSET_COMMIT, 10, **body)
    assert errors(found) == [
        (b"x" * 16, 0, ErrorCode.UNKNOWN_TOPIC_ID),
        (TOPIC_ID, 0, ErrorCode.NONE),
    ]


@pytest.mark.parametrize("version", versions(ApiKey.OFFSET_FETCH))
async def test_many_offsets_are_committed_and_looked_up_in_parts(version, monkeypatch):
    monkeypatch.setattr("wirebroker.api.groups.commit_portions._AT_ONCE", 1)
    monkeypatch.setattr("wirebroker.api.groups.offset_fetch._AT_ONCE", 1)

    broker = with_topic()
    commit_version = version if version >= 9 else 2
    name = TOPIC_ID if version >= 10 else "t"
    body = commit_body(commit_version, (name, 0, 1))
    found = await answer_soon(broker, ApiKey.OFFSET_COMMIT, commit_version, **body)
    assert errors(found) == [(name, 0, ErrorCode.NONE), (name, 1, ErrorCode.NONE)]
    assert len(found.topics) == 1
    for topics in ({}, {"topics": None}) if version >= 2 else ({},):
        body = fetch_body(version, **topics)
        found = await answer_soon(broker, ApiKey.OFFSET_FETCH, version, **body)
        [topic] = found.topics if version < 8 else found.groups[0].topics
        assert [each.committed_offset for each in topic.partitions] == [5, 5]


async def test_an_error_of_the_group_is_told_of_each_part(monkeypatch):
    monkeypatch.setattr("wirebroker.api.groups.commit_portions._AT_ONCE", 1)
    body = commit_body(9, ("t", 0, 1), member_id="m", generation_id_or_member_epoch=3)
    found = await answer_soon(with_topic(), ApiKey.OFFSET_COMMIT, 9, **body)
    unknown = ErrorCode.GROUP_ID_NOT_FOUND
    assert errors(found) == [("t", 0, unknown), ("t", 1, unknown)]


def test_an_error_of_the_group_is_every_partitions():
    body = commit_body(9, ("t", 0, 1), member_id="m", generation_id_or_member_epoch=3)
    found = answer(with_topic(), ApiKey.OFFSET_COMMIT, 9, **body)
    assert {error for _, _, error in errors(found)} == {ErrorCode.GROUP_ID_NOT_FOUND}


async def test_all_topics_and_unknown_ones():
    broker = with_topic()
    await answer_soon(broker, ApiKey.OFFSET_COMMIT, 9, **commit_body(9, ("t", 1)))
    found = await answer_soon(broker, ApiKey.OFFSET_FETCH, 7, group_id="g", topics=None)
    assert [each.name for each in found.topics] == ["t"]
    groups = [{"group_id": "g", "topics": None}, {"group_id": "other", "topics": None}]
    found = await answer_soon(broker, ApiKey.OFFSET_FETCH, 10, groups=groups)
    assert [len(each.topics) for each in found.groups] == [1, 0]
    assert found.groups[0].topics[0].topic_id == TOPIC_ID
    asked = [{"topic_id": b"x" * 16, "partition_indexes": [0]}]
    by_id = [{"group_id": "g", "topics": asked}]
    found = await answer_soon(broker, ApiKey.OFFSET_FETCH, 10, groups=by_id)
    [partition] = found.groups[0].topics[0].partitions
    assert partition.error_code == ErrorCode.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize("version", versions(ApiKey.OFFSET_FETCH))
def test_without_a_coordinator_the_error_is_where_the_version_has_room(version):
    broker = group_broker(partitions={})
    found = answer(broker, ApiKey.OFFSET_FETCH, version, **fetch_body(version))
    error = ErrorCode.NOT_COORDINATOR
    if version == 1:
        assert [each.error_code for each in found.topics[0].partitions] == [error, error]
    else:
        assert (found if version < 8 else found.groups[0]).error_code == error


async def test_an_offset_is_deleted():
    broker = with_topic()
    await answer_soon(broker, ApiKey.OFFSET_COMMIT, 9, **commit_body(9, ("t", 0)))
    partitions = [{"partition_index": index} for index in (0, 7)]
    topics = [{"name": "t", "partitions": partitions}]
    found = await answer_soon(broker, ApiKey.OFFSET_DELETE, 0, group_id="g", topics=topics)
    assert errors_by_index(found) == {
        0: ErrorCode.NONE,
        7: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    [shard] = broker.groups.shards()
    assert shard.offsets.count == 0


def errors_by_index(found):
    return {each.partition_index: each.error_code for each in found.topics[0].partitions}


# -- administration --


@pytest.mark.parametrize("version", versions(ApiKey.DESCRIBE_GROUPS))
async def test_groups_are_described_in_the_order_asked(version):
    broker = with_topic()
    await answer_soon(broker, ApiKey.OFFSET_COMMIT, 9, **commit_body(9, ("t", 0)))
    body = {"include_authorized_operations": True} if version >= 3 else {}
    found = await answer_soon(
        broker, ApiKey.DESCRIBE_GROUPS, version, groups=["other", "g"], **body
    )
    other, group = found.groups
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
    found = await answer_soon(broker, ApiKey.LIST_GROUPS, version)
    assert [each.group_id for each in found.groups] == ["g"]
    assert found.groups[0].group_type == ("classic" if version >= 5 else "")


@pytest.mark.parametrize("version", versions(ApiKey.DELETE_GROUPS))
async def test_groups_are_deleted_once_each(version):
    broker = with_topic()
    await answer_soon(broker, ApiKey.OFFSET_COMMIT, 9, **commit_body(9, ("t", 0)))
    names = ["g", "g", "other"]
    found = await answer_soon(broker, ApiKey.DELETE_GROUPS, version, groups_names=names)
    assert [(each.group_id, each.error_code) for each in found.results] == [
        ("g", ErrorCode.NONE),
        ("other", ErrorCode.GROUP_ID_NOT_FOUND),
    ]


def says_much(size, group_id):
    protocols = [{"name": "range", "metadata": b"x" * size}]
    return join_body(3, group_id=group_id, protocols=protocols)


async def test_the_metadata_of_a_member_has_a_bound(monkeypatch):
    monkeypatch.setattr("wirebroker.api.groups.join_group.FEW_METADATA_BYTES", 10)
    monkeypatch.setattr("wirebroker.api.groups.join_group.MOST_METADATA_BYTES", 100)
    broker = group_broker()
    await turns()
    for size, expected in ((90, ErrorCode.NONE), (100, ErrorCode.UNKNOWN_SERVER_ERROR)):
        found = await answer_soon(broker, ApiKey.JOIN_GROUP, 3, **says_much(size, f"g-{size}"))
        assert found.error_code == expected
    assert {
        group.group_id for shard in broker.groups.shards() for group in shard.groups.values()
    } == {"g-90"}


async def test_the_metadata_of_all_members_has_a_bound(monkeypatch):
    monkeypatch.setattr("wirebroker.api.groups.join_group.FEW_METADATA_BYTES", 10)
    monkeypatch.setattr("wirebroker.api.groups.join_group.MOST_METADATA_BYTES_OF_ALL", 200)
    broker = group_broker()
    await turns()
    joined = await answer_soon(broker, ApiKey.JOIN_GROUP, 3, **says_much(150, "a"))
    assert joined.error_code == ErrorCode.NONE
    refused = await answer_soon(broker, ApiKey.JOIN_GROUP, 3, **says_much(60, "b"))
    assert refused.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    # It replaces the member's earlier metadata.
    asked = says_much(150, "a") | {"member_id": joined.member_id}
    rejoined = await answer_soon(broker, ApiKey.JOIN_GROUP, 3, **asked)
    assert rejoined.error_code == ErrorCode.NONE
    small = await answer_soon(broker, ApiKey.JOIN_GROUP, 3, **says_much(5, "c"))
    assert small.error_code == ErrorCode.NONE
    members = [{"member_id": joined.member_id}]
    await answer_soon(broker, ApiKey.LEAVE_GROUP, 3, group_id="a", members=members)
    (shard,) = broker.groups.shards()
    assert shard.metadata_bytes == len("range") + 5
    again = await answer_soon(broker, ApiKey.JOIN_GROUP, 3, **says_much(60, "b"))
    assert again.error_code == ErrorCode.NONE
