"""LeaveGroup with many members, which is served in parts."""

from __future__ import annotations

import importlib
import inspect
from asyncio import gather
from typing import Any

from tests.support.coordinators.group_kit import REBALANCE_MS
from tests.unit.wirebroker.api.api_kit import answer_soon, begin
from tests.unit.wirebroker.coordination.group_server_kit import group_broker, turns
from wirebroker.base.clock import next_turn
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.metadata_records import RecordType, metadata_record
from wirebroker.coordinator.groups.consumer.consumer_group import ConsumerGroup

for name in ("consumer_group_heartbeat", "leave_group"):
    importlib.import_module(f"wirebroker.api.groups.{name}")

FEATURE = metadata_record(RecordType.FEATURE_LEVEL, name="group.version", feature_level=1)
MEMBERS = [f"m{number}" for number in range(5)]


async def broker_with_members() -> Any:
    broker = group_broker(FEATURE)
    await turns()
    for member_id in MEMBERS:
        body = {
            "group_id": "g",
            "member_id": member_id,
            "member_epoch": 0,
            "rebalance_timeout_ms": REBALANCE_MS,
            "subscribed_topic_names": ["t"],
            "topic_partitions": [],
        }
        joined = await answer_soon(broker, ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, **body)
        assert joined.error_code == ErrorCode.NONE
    return broker


def group_of(broker: Any) -> ConsumerGroup:
    group = broker.groups.shard_of("g").groups["g"]
    assert isinstance(group, ConsumerGroup)
    return group


def leaving(*member_ids: str) -> dict[str, Any]:
    return {"group_id": "g", "members": [{"member_id": member_id} for member_id in member_ids]}


async def test_many_members_leave_in_parts(monkeypatch):
    monkeypatch.setattr("wirebroker.api.groups.leave_group._AT_ONCE", 2)
    broker = await broker_with_members()
    counts: list[int] = []

    async def look() -> None:
        while group_of(broker).members:
            counts.append(len(group_of(broker).members))
            await next_turn()

    result = begin(broker, ApiKey.LEAVE_GROUP, 5, **leaving("stranger", *MEMBERS))
    assert inspect.isawaitable(result)
    answers = []

    async def leave() -> None:
        answers.append(await result)

    await gather(leave(), look())
    assert counts == [4, 2]
    (answer,) = answers
    assert [member["member_id"] for member in answer["members"]] == ["stranger", *MEMBERS]
    errors = [member.get("error_code", ErrorCode.NONE) for member in answer["members"]]
    assert errors == [ErrorCode.UNKNOWN_MEMBER_ID, *[ErrorCode.NONE] * len(MEMBERS)]


async def test_few_members_leave_in_one_part():
    broker = await broker_with_members()
    epoch = group_of(broker).epoch
    result = begin(broker, ApiKey.LEAVE_GROUP, 5, **leaving(*MEMBERS))
    assert not inspect.isawaitable(result)
    assert not group_of(broker).members
    assert group_of(broker).epoch == epoch + 1
