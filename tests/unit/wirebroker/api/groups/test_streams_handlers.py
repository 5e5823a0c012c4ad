"""The handlers of streams groups: gates, limits, and the creation of internal topics."""

import importlib

import pytest

from tests.support.coordinators.kit import topic
from tests.unit.wirebroker.api.api_kit import answer, answer_soon
from tests.unit.wirebroker.coordination.group_server_kit import group_broker, turns
from wirebroker.api.groups import member_memory, streams_group_heartbeat
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.controller.features.feature_control import feature_level
from wirebroker.coordinator.groups.streams import prepared_topology
from wirebroker.coordinator.groups.streams.prepared_topology import PreparedTopology, TopologyInputs
from wirebroker.coordinator.groups.streams_settings import StreamsSettings
from wirebroker.coordinator.groups.topologies.topic_problem import TopicStatus

for each in ("described_groups", "streams_group_heartbeat", "streams_group_topology"):
    importlib.import_module(f"wirebroker.api.groups.{each}")

HEARTBEAT, DESCRIBE = ApiKey.STREAMS_GROUP_HEARTBEAT, ApiKey.STREAMS_GROUP_DESCRIBE
UPDATE = ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE
CHANGELOG = {
    "name": "log",
    "partitions": 0,
    "replication_factor": 1,
    "topic_configs": [{"key": "cleanup.policy", "value": "compact"}],
}
SUBTOPOLOGY = {"subtopology_id": "0", "source_topics": ["t"], "state_changelog_topics": [CHANGELOG]}
JOIN = {
    "group_id": "g",
    "member_id": "m",
    "rebalance_timeout_ms": 60_000,
    "topology": {"epoch": 0, "subtopologies": [SUBTOPOLOGY]},
    "active_tasks": [],
    "standby_tasks": [],
    "warmup_tasks": [],
    "process_id": "p",
}


def streams_broker(*, level=1, **settings):
    records = [feature_level("streams.version", level)] if level else []
    values = {"streams": StreamsSettings(initial_rebalance_delay_ms=0), **settings}
    return group_broker(*topic("t", 1, partitions=2), *records, **values)


@pytest.mark.parametrize(
    "broker",
    [
        streams_broker(level=0),
        streams_broker(rebalance_protocols=frozenset({"classic", "consumer"})),
    ],
    ids=["feature", "protocol"],
)
def test_groups_are_served_if_feature_and_settings_allow(broker):
    assert answer(broker, HEARTBEAT, 1, **JOIN).error_code == ErrorCode.UNSUPPORTED_VERSION
    (group,) = answer(broker, DESCRIBE, 1, group_ids=["g"]).groups
    assert (group.group_id, group.error_code) == ("g", ErrorCode.UNSUPPORTED_VERSION)
    refusal = answer(broker, UPDATE, 0, group_id="g", topology_description={})
    assert (refusal.error_code, refusal.error_message) == (ErrorCode.UNSUPPORTED_VERSION, None)


def test_topology_descriptions_are_refused():
    refusal = answer(streams_broker(), UPDATE, 0, group_id="g", topology_description={})
    assert refusal.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert "no streams group topology description plugin" in refusal.error_message


async def test_missing_internal_topic_is_created():
    broker = streams_broker()
    joined = await answer_soon(broker, HEARTBEAT, 1, **JOIN)
    (status,) = joined.status
    assert status.status_code == TopicStatus.MISSING_INTERNAL_TOPICS
    assert status.status_detail == "Internal topics are missing: log"
    await turns()
    created = broker.metadata.image.topics["log"]
    assert len(created.partitions) == 2


@pytest.mark.parametrize(("changes", "prepared"), [(0, 1), (1, 2), (9, 3)])
async def test_large_topology_is_prepared_while_its_topics_change(monkeypatch, changes, prepared):
    monkeypatch.setattr(streams_group_heartbeat, "_LONG_BYTES", 0)
    monkeypatch.setattr(prepared_topology, "_FEW", -1)
    broker = streams_broker()
    shard = broker.groups.shard_of("g")
    calls: list[TopologyInputs] = []

    def prepare(inputs: TopologyInputs) -> PreparedTopology:
        calls.append(inputs)
        if len(calls) <= changes:
            shard.topic_hashes.follow(shard.image, ["t"])
        return prepared_topology.prepare(inputs)

    monkeypatch.setattr(streams_group_heartbeat, "prepare", prepare)
    joined = await answer_soon(broker, HEARTBEAT, 1, **JOIN)
    (status,) = joined.status
    assert status.status_detail == "Internal topics are missing: log"
    assert len(calls) == prepared
    changes = 0
    stayed = {"group_id": "g", "member_id": "m", "member_epoch": joined.member_epoch}
    assert (await answer_soon(broker, HEARTBEAT, 1, **stayed)).error_code == ErrorCode.NONE
    assert len(calls) == prepared + 1
    assert calls[-1].present is shard.groups["g"].topology


async def test_failed_creation_is_reported():
    broker = streams_broker()
    topology = {
        "epoch": 0,
        "subtopologies": [
            {**SUBTOPOLOGY, "state_changelog_topics": [{**CHANGELOG, "replication_factor": 3}]}
        ],
    }
    await answer_soon(broker, HEARTBEAT, 1, **JOIN | {"topology": topology})
    await turns()
    stayed = await answer_soon(broker, HEARTBEAT, 1, group_id="g", member_id="m", member_epoch=2)
    (status,) = stayed.status
    assert "log; Creation failed: log (" in status.status_detail
    assert "log" not in broker.metadata.image.topics


async def test_groups_are_described_with_what_is_requested():
    broker = streams_broker()
    await answer_soon(broker, HEARTBEAT, 1, **JOIN)
    request = {
        "group_ids": ["g", "x", ""],
        "include_authorized_operations": True,
        "include_topology_description": True,
    }
    known, unknown, empty = (await answer_soon(broker, DESCRIBE, 1, **request)).groups
    assert (known.group_state, known.topology_description_status) == ("NotReady", 1)
    assert known.authorized_operations > 0
    assert (unknown.error_code, unknown.topology_description_status) == (
        ErrorCode.GROUP_ID_NOT_FOUND,
        0,
    )
    assert empty.error_code == ErrorCode.INVALID_GROUP_ID
    (plain,) = (await answer_soon(broker, DESCRIBE, 0, group_ids=["g"])).groups
    assert plain.authorized_operations == -(1 << 31)


def test_member_may_take_only_so_much_memory(monkeypatch):
    monkeypatch.setattr(member_memory, "FEW_METADATA_BYTES", 10)
    monkeypatch.setattr(member_memory, "MOST_METADATA_BYTES", 1_000)
    tags = [{"key": "k", "value": "v" * 1_000}]
    refusal = answer(streams_broker(), HEARTBEAT, 1, **JOIN, client_tags=tags)
    assert refusal.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_invalid_request_is_refused_before_the_coordinator_is_looked_up():
    broker = group_broker(feature_level("streams.version", 1), is_led=False)
    assert answer(broker, HEARTBEAT, 1, **JOIN).error_code == ErrorCode.NOT_COORDINATOR
    refusal = answer(broker, HEARTBEAT, 1, **JOIN | {"topology": None})
    assert refusal.error_code == ErrorCode.INVALID_REQUEST
