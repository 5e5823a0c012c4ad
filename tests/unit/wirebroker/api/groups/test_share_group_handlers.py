"""Share groups with a persister: the handlers, and the work beside the shards."""

import importlib
from unittest import mock

import pytest

from tests.support.coordinators.fake_persister import FAILED, FakeLatestOffsets, FakePersister
from tests.support.coordinators.kit import topic, topic_id
from tests.unit.wirebroker.api.api_kit import answer_soon
from tests.unit.wirebroker.coordination.group_server_kit import ListPartition, group_broker, turns
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.controller.features.feature_control import SHARE_VERSION, feature_level
from wirebroker.coordinator.groups.share import share_assignment

for each in (
    "delete_groups",
    "described_groups",
    "share_group_heartbeat",
    "share_offsets_alter",
    "share_offsets_delete",
    "share_offsets_describe",
):
    importlib.import_module(f"wirebroker.api.groups.{each}")

T, U = topic_id(1), topic_id(2)
TOPICS = (*topic("t", 1, partitions=2), *topic("u", 2))
UNSUPPORTED = ErrorCode.UNSUPPORTED_VERSION


def share_broker(*, level=2, **settings):
    features = [feature_level(SHARE_VERSION, level)] if level else []
    broker = group_broker(*TOPICS, *features, share_assignment_interval_ms=0, **settings)
    broker.persister = FakePersister()
    broker.latest_offsets = FakeLatestOffsets()
    broker.groups.use_persister(lambda: broker.persister)
    return broker


async def beat(broker, epoch, *names, member_id="m", settles=True):
    response = await answer_soon(
        broker,
        ApiKey.SHARE_GROUP_HEARTBEAT,
        1,
        group_id="g",
        member_id=member_id,
        member_epoch=epoch,
        subscribed_topic_names=list(names) or None,
    )
    if settles:
        await turns()
    return response


async def described(broker, *topics, version=1):
    requested = [{"topic_name": name, "partitions": list(indexes)} for name, *indexes in topics]
    group = {"group_id": "g", "topics": requested or None}
    key = ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS
    (response,) = (await answer_soon(broker, key, version, groups=[group])).groups
    return response


def partitions_of(response):
    return {
        (topic.topic_name, partition.partition_index): partition
        for topic in response.topics
        for partition in topic.partitions
    }


async def altered(broker, *topics):
    requested = [
        {
            "topic_name": name,
            "partitions": [
                {"partition_index": index, "start_offset": offset}
                for index, offset in offsets.items()
            ],
        }
        for name, offsets in topics
    ]
    key = ApiKey.ALTER_SHARE_GROUP_OFFSETS
    response = await answer_soon(broker, key, 0, group_id="g", topics=requested)
    return response, {
        (topic.topic_name, partition.partition_index): (
            partition.error_code,
            partition.error_message,
        )
        for topic in response.responses
        for partition in topic.partitions
    }


async def deleted(broker, *names):
    key = ApiKey.DELETE_SHARE_GROUP_OFFSETS
    topics = [{"topic_name": name} for name in names]
    return await answer_soon(broker, key, 0, group_id="g", topics=topics)


async def delete_group(broker):
    response = await answer_soon(broker, ApiKey.DELETE_GROUPS, 2, groups_names=["g"])
    return response.results[0].error_code


def assigned(response):
    return {topic.topic_id: topic.partitions for topic in response.assignment.topic_partitions}


async def test_partitions_are_assigned_once_the_persister_has_created_their_state():
    broker = share_broker()
    assert assigned(await beat(broker, 0, "t")) == {}
    assert broker.persister.states == {("g", T, 0): (2, -1, 0), ("g", T, 1): (2, -1, 0)}
    assert assigned(await beat(broker, 2)) == {T: [0, 1]}


async def test_a_failed_persister_is_asked_again_by_the_next_heartbeat(caplog):
    broker = share_broker()
    broker.persister.failing = {(T, 1)}
    await beat(broker, 0, "t")
    assert "cannot initialize its share state (no coordinator)" in caplog.text
    broker.persister.failing = set()
    assert (await beat(broker, 2)).assignment is None
    assert assigned(await beat(broker, 2)) == {T: [0, 1]}


async def test_a_result_is_dropped_if_the_coordinator_has_moved():
    broker = share_broker()
    broker.persister.may_answer.clear()
    await beat(broker, 0, "t")
    partition = broker.replicas.partitions[0]
    count = len(partition.records())
    broker.replicas.resign(partition)
    broker.persister.may_answer.set()
    await turns()
    assert len(partition.records()) == count


async def test_a_stop_ends_running_initializations():
    broker = share_broker()
    broker.persister.may_answer.clear()
    await beat(broker, 0, "t")
    await broker.groups.stop()
    broker.persister.may_answer.set()
    await turns()
    assert broker.persister.states == {}


async def test_a_large_group_is_assigned_in_the_background():
    with mock.patch.object(share_assignment, "MOST_AT_ONCE", 0):
        broker = share_broker()
        await beat(broker, 0, "t")
        await beat(broker, 1)
        await beat(broker, 2)
        assert assigned(await beat(broker, 2, "t")) == {T: [0, 1]}


async def test_offsets_begin_where_an_administrator_says():
    broker = share_broker()
    unknown = (3, "This server does not host this topic-partition.")
    response, results = await altered(broker, ("t", {0: 7, 2: 1, -1: 1}), ("missing", {0: 1}))
    assert response.error_code == 0
    assert results == {
        ("t", 0): (0, None),
        ("t", 2): unknown,
        ("t", -1): unknown,
        ("missing", 0): unknown,
    }
    assert broker.persister.states == {("g", T, 0): (1, 7, 0)}
    partition = partitions_of(await described(broker))["t", 0]
    assert (partition.start_offset, partition.leader_epoch, partition.lag) == (7, 3, 3)


async def test_failures_of_the_persister_are_told_for_each_partition():
    broker = share_broker()
    broker.persister.failing = {(T, 1)}
    _, results = await altered(broker, ("t", {0: 7, 1: 7, 5: 0}))
    assert results["t", 0] == (0, None)
    assert results["t", 1] == (FAILED.code, FAILED.message)
    assert results["t", 5][0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (await described(broker)).topics == []


async def test_described_offsets_and_lags():
    broker = share_broker()
    broker.persister.states = {("g", T, 0): (1, 4, 2), ("g", U, 0): (1, 4, 0)}
    broker.persister.failing = {(T, 1)}
    broker.latest_offsets.ends["u", 0] = ErrorCode.LEADER_NOT_AVAILABLE
    response = await described(broker, ("t", 0, 1), ("u", 0), ("missing", 0))
    partitions = partitions_of(response)
    known, failing = partitions["t", 0], partitions["t", 1]
    assert (known.start_offset, known.leader_epoch, known.lag) == (4, 3, 4)
    assert (failing.start_offset, failing.leader_epoch, failing.lag) == (-1, 0, -1)
    assert failing.error_code == 0
    assert partitions["u", 0].error_code == ErrorCode.LEADER_NOT_AVAILABLE
    assert partitions["missing", 0].start_offset == -1
    assert (await described(broker)).topics == []


async def test_topics_lose_their_offsets():
    broker = share_broker()
    await altered(broker, ("t", {0: 7}), ("u", {0: 7}))
    broker.persister.failing = {(U, 0)}
    response = await deleted(broker, "t", "u", "missing", "t")
    results = {topic.topic_name: topic.error_code for topic in response.responses}
    assert results == {
        "t": ErrorCode.NONE,
        "u": FAILED.code,
        "missing": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    broker.persister.failing = set()
    response = await deleted(broker, "t", "u")
    messages = {topic.topic_name: topic.error_message for topic in response.responses}
    assert messages == {"t": "There is no offset information to delete.", "u": None}
    assert broker.persister.states == {}


async def test_a_group_is_deleted_with_its_state():
    broker = share_broker()
    await altered(broker, ("t", {0: 7}))
    broker.persister.failing = {(T, 0)}
    assert await delete_group(broker) == FAILED.code
    broker.persister.failing = set()
    assert await delete_group(broker) == ErrorCode.NONE
    assert broker.persister.states == {}
    assert await delete_group(broker) == ErrorCode.GROUP_ID_NOT_FOUND


async def test_a_group_with_members_is_not_deleted():
    broker = share_broker()
    await beat(broker, 0, "t")
    assert await delete_group(broker) == ErrorCode.NON_EMPTY_GROUP
    assert (await deleted(broker, "t")).error_code == ErrorCode.NON_EMPTY_GROUP
    assert (await altered(broker, ("t", {0: 0})))[0].error_code == ErrorCode.NON_EMPTY_GROUP


@pytest.mark.parametrize("name", ["m" * 37, ""])
async def test_member_ids_have_a_limited_length(name):
    response = await beat(share_broker(), 0, "t", member_id=name)
    assert (response.error_code, response.error_message) == (ErrorCode.INVALID_REQUEST, None)


async def test_a_member_with_too_many_names_is_refused():
    names = [f"{number:08}" + "x" * 240 for number in range(18_000)]
    response = await beat(share_broker(), 0, *names)
    assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


async def test_without_the_feature_nothing_is_served():
    broker = share_broker(level=0)
    assert (await beat(broker, 0, "t")).error_code == UNSUPPORTED
    key = ApiKey.SHARE_GROUP_DESCRIBE
    (group,) = (await answer_soon(broker, key, 1, group_ids=["g"])).groups
    assert group.error_code == UNSUPPORTED
    assert (await described(broker)).error_code == UNSUPPORTED
    assert (await altered(broker))[0].error_code == UNSUPPORTED
    assert (await deleted(broker)).error_code == UNSUPPORTED


async def test_other_nodes_do_not_coordinate():
    broker = share_broker(partitions={0: ListPartition()}, is_led=False)
    assert (await beat(broker, 0, "t")).error_code == ErrorCode.NOT_COORDINATOR
    text = "This is not the correct coordinator."
    for response in (
        await described(broker),
        (await altered(broker, ("t", {0: 0})))[0],
        await deleted(broker, "t"),
    ):
        assert (response.error_code, response.error_message) == (ErrorCode.NOT_COORDINATOR, text)
