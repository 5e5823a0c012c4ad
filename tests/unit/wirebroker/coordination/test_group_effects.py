"""Work beside the shards: which groups wait for which."""

from __future__ import annotations

import asyncio
import importlib
from typing import TYPE_CHECKING, Any

from tests.support.coordinators.kit import topic
from tests.support.tools.waiting import until
from tests.unit.wirebroker.api.api_kit import answer_soon
from tests.unit.wirebroker.coordination.group_server_kit import ListPartition, group_broker, turns
from wirebroker.base.clock import SystemClock
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.metadata_records import RecordType, metadata_record
from wirebroker.coordinator.groups.consumer import target_assignment

if TYPE_CHECKING:
    import pytest

importlib.import_module("wirebroker.api.groups.consumer_group_heartbeat")

FEATURE = metadata_record(RecordType.FEATURE_LEVEL, name="group.version", feature_level=1)
NAMES = [f"t{number}" for number in range(10)]


async def join(broker: Any, group_id: str, *names: str) -> None:
    body = {
        "group_id": group_id,
        "member_id": "m",
        "member_epoch": 0,
        "rebalance_timeout_ms": 60_000,
        "subscribed_topic_names": list(names),
        "topic_partitions": [],
    }
    joined = await answer_soon(broker, ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, **body)
    assert joined.error_code == 0


async def test_small_groups_do_not_wait_for_a_long_assignment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(target_assignment, "MOST_AT_ONCE", 0)
    monkeypatch.setattr(target_assignment, "MOST_BRIEF", 5)
    run_job, released = target_assignment.run_job, asyncio.Event()

    def slow(job: Any) -> Any:
        while job.group_id.startswith("long") and not released.is_set():
            yield
        return (yield from run_job(job))

    monkeypatch.setattr(target_assignment, "run_job", slow)
    topics = [record for number, name in enumerate(NAMES, 1) for record in topic(name, number)]
    broker = group_broker(FEATURE, *topics, partitions={0: ListPartition()}, clock=SystemClock())
    await turns()
    groups = broker.groups.shard_of("long").groups

    def is_assigned(group_id: str) -> bool:
        return bool(groups[group_id].assignment_epoch == groups[group_id].epoch)

    for group_id in ("long", "long too"):
        await join(broker, group_id, *NAMES)
    await join(broker, "short", NAMES[0])
    await until(lambda: is_assigned("short"))
    assert not is_assigned("long")
    # Long assignments are made one at a time.
    released.set()
    await until(lambda: is_assigned("long") and is_assigned("long too"))
    assert {group.background_work for group in groups.values()} == {None}
    await broker.groups.stop()
