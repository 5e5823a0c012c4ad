"""Requests that name a group many times: each distinct group has one response."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from tests.support.coordinators.fake_persister import FakeLatestOffsets, FakePersister
from tests.support.coordinators.kit import topic
from tests.unit.wirebroker.api.api_kit import answer_soon
from tests.unit.wirebroker.coordination.group_server_kit import group_broker, turns
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.metadata_records import RecordType, metadata_record

for _module in (
    "consumer_group_heartbeat",
    "delete_groups",
    "describe_groups",
    "offset_fetch",
    "described_groups",
    "share_group_heartbeat",
    "share_offsets_describe",
    "streams_group_heartbeat",
):
    importlib.import_module(f"wirebroker.api.groups.{_module}")

REPEATED = 1_000
KINDS = {"group.version": "consumer", "share.version": "share", "streams.version": "streams"}

JOINS: dict[str, tuple[ApiKey, dict[str, Any]]] = {
    "consumer": (
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": ["t"], "topic_partitions": []},
    ),
    "share": (ApiKey.SHARE_GROUP_HEARTBEAT, {"subscribed_topic_names": ["t"]}),
    "streams": (
        ApiKey.STREAMS_GROUP_HEARTBEAT,
        {
            "endpoint_information_epoch": 0,
            "rebalance_timeout_ms": 60_000,
            "process_id": "p",
            "topology": {
                "epoch": 1,
                "subtopologies": [
                    {
                        "subtopology_id": "0",
                        "source_topics": ["t"],
                        "source_topic_regex": [],
                        "state_changelog_topics": [],
                        "repartition_sink_topics": [],
                        "repartition_source_topics": [],
                        "copartition_groups": [],
                    }
                ],
            },
            "active_tasks": [],
            "standby_tasks": [],
            "warmup_tasks": [],
        },
    ),
}


def names(*ids: str) -> list[str]:
    return list(ids)


def with_topics(*ids: str) -> list[dict[str, Any]]:
    """Return entries of groups that differ in their topics."""
    return [
        {"group_id": each, "topics": None if number % 2 else []} for number, each in enumerate(ids)
    ]


# The request, its field with the groups and what it has for them, and the response's field.
REQUESTS = {
    "DescribeGroups": (ApiKey.DESCRIBE_GROUPS, 6, "groups", names, "groups"),
    "ConsumerGroupDescribe": (ApiKey.CONSUMER_GROUP_DESCRIBE, 1, "group_ids", names, "groups"),
    "ShareGroupDescribe": (ApiKey.SHARE_GROUP_DESCRIBE, 1, "group_ids", names, "groups"),
    "StreamsGroupDescribe": (ApiKey.STREAMS_GROUP_DESCRIBE, 1, "group_ids", names, "groups"),
    "OffsetFetch": (ApiKey.OFFSET_FETCH, 9, "groups", with_topics, "groups"),
    "DescribeShareGroupOffsets": (
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
        1,
        "groups",
        with_topics,
        "groups",
    ),
    "DeleteGroups": (ApiKey.DELETE_GROUPS, 2, "groups_names", names, "results"),
}


async def furnished(*, is_served: bool = True) -> Any:
    """Return a broker with a group of each kind, of two members."""
    features = [
        metadata_record(RecordType.FEATURE_LEVEL, name=name, feature_level=1) for name in KINDS
    ]
    served = features if is_served else []
    broker = group_broker(*served, *topic("t", 1, partitions=3))
    broker.persister = FakePersister()
    broker.latest_offsets = FakeLatestOffsets()
    broker.groups.use_persister(lambda: broker.persister)
    await turns()
    for kind, (key, fields) in JOINS.items() if is_served else ():
        for member_id in ("a", "b"):
            joined = {"group_id": kind, "member_id": member_id, "member_epoch": 0, **fields}
            response = await answer_soon(broker, key, 1, **joined)
            assert response.error_code == 0
    return broker


@pytest.mark.parametrize("is_served", [True, False])
@pytest.mark.parametrize("name", REQUESTS)
async def test_a_group_that_is_named_many_times_has_one_response(
    name: str, is_served: bool
) -> None:
    broker = await furnished(is_served=is_served)
    key, version, field, entries, answered = REQUESTS[name]
    ids = (*KINDS.values(), "unknown")
    once = await answer_soon(broker, key, version, **{field: entries(*ids)})
    # Such that each id has both kinds of entries.
    requested = entries(*(each for each in (*ids, "") for _ in range(REPEATED)))
    often = await answer_soon(broker, key, version, **{field: requested})
    responses = getattr(often, answered)
    assert [each.group_id for each in responses] == [*ids, ""]
    if name.endswith(("Describe", "Groups")):
        assert responses[:-1] == getattr(once, answered)
    await broker.groups.stop()
