"""Records with their decoded values: what a shard replays is what a load decodes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.support.coordinators.consumer_kit import ConsumerGroups
from tests.support.coordinators.share_group_kit import ShareGroups
from wirebroker.codecs.group_records import GroupRecordKind, KnownRecord, decode_record_key
from wirebroker.coordinator.groups.consumer import consumer_replay
from wirebroker.coordinator.groups.consumer.consumer_member import ConsumerMember
from wirebroker.coordinator.groups.share import share_replay


def consumers() -> ConsumerGroups:
    groups = ConsumerGroups()
    groups.enter("a", "t", "u")
    groups.enter("b", "t")
    groups.settle("a", "b")
    return groups


def share_members() -> ShareGroups:
    groups = ShareGroups()
    groups.share_join("a", "t")
    groups.share_join("b", "t", "u")
    groups.share_settle()
    return groups


# How groups are made, the module that replays their records, and the kinds with known values.
KINDS: list[Any] = [
    (
        consumers,
        consumer_replay,
        {
            GroupRecordKind.CONSUMER_GROUP_MEMBER_METADATA,
            GroupRecordKind.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER,
            GroupRecordKind.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT,
        },
    ),
    (
        share_members,
        share_replay,
        {
            GroupRecordKind.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER,
            GroupRecordKind.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT,
            GroupRecordKind.SHARE_GROUP_STATE_PARTITION_METADATA,
        },
    ),
]
IDS = ["consumer", "share"]


def _without_state(body: Any) -> Any:
    """Leave out of a member what its subscription record does not have."""
    if not isinstance(body, ConsumerMember):
        return body
    return replace(
        ConsumerMember(""),
        instance_id=body.instance_id,
        rack_id=body.rack_id,
        client_id=body.client_id,
        client_host=body.client_host,
        topic_names=body.topic_names,
        topic_regex=body.topic_regex,
        rebalance_timeout_ms=body.rebalance_timeout_ms,
        server_assignor=body.server_assignor,
        classic=body.classic,
    )


@pytest.mark.parametrize(("make", "module", "kinds"), KINDS, ids=IDS)
def test_a_known_value_is_the_decoded_one(make, module, kinds):
    seen = set()
    for record in make().log:
        if isinstance(record, KnownRecord) and record.value is not None:
            key: Any = decode_record_key(record.key)
            seen.add(key.kind)
            decoded = module.decoded(key.kind, record.value)
            assert _without_state(decoded) == _without_state(record.body)
    assert seen == kinds


@pytest.mark.parametrize(("make", "module", "kinds"), KINDS, ids=IDS)
def test_a_known_value_is_not_decoded_again(make, module, kinds, monkeypatch):
    decode, seen = module.decoded, []

    def note(kind, value):
        seen.append(kind)
        return decode(kind, value)

    monkeypatch.setattr(module, "decoded", note)
    make()
    assert not set(seen) & kinds
