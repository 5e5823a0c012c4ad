"""Fetches of the metadata log by followers: batches, divergence, snapshots, progress."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.coordinators.kit import new_topic
from tests.support.tools.waiting import PATIENCE_S
from tests.unit.wirebroker.quorum.log.metadata_kit import CLUSTER_ID, Node, settle, snapshotting
from wirebroker.base.clock import next_turn
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.messages import request_message, response_message
from wirebroker.codecs.records.batch import iterate_batches
from wirebroker.coordinator.controller.requests.request import ControllerRequest
from wirebroker.quorum.log.metadata_snapshot import read_snapshot
from wirebroker.quorum.log.metadata_store import TOPIC_ID
from wirebroker.storage.files import Files

if TYPE_CHECKING:
    from pathlib import Path

    from wirebroker.quorum.controller.quorum_controller import QuorumController

VERSION = 18
EPOCH = 1
DIRECTORY = bytes([9]) * 16
LISTENER = "CONTROLLER"


def _asked(**fields: Any) -> dict[str, Any]:
    return {
        "partition": 0,
        "current_leader_epoch": EPOCH,
        "fetch_offset": 0,
        "last_fetched_epoch": 0,
        "partition_max_bytes": 1 << 20,
        "replica_directory_id": DIRECTORY,
        **fields,
    }


async def fetch(
    controller: QuorumController,
    *,
    wait_ms: int = 0,
    cluster_id: str = CLUSTER_ID,
    topic_id: bytes = TOPIC_ID,
    **fields: Any,
) -> Any:
    body = request_message(ApiKey.FETCH).struct_class(
        cluster_id=cluster_id,
        replica_state={"replica_id": 5, "replica_epoch": -1},
        max_wait_ms=wait_ms,
        topics=[{"topic_id": topic_id, "partitions": [_asked(**fields)]}],
    )
    answer = await controller.node.respond(ApiKey.FETCH, VERSION, body, listener=LISTENER)
    return response_message(ApiKey.FETCH).struct_class(**answer)


def partition_of(answer: Any) -> Any:
    [topic] = answer.responses
    [partition] = topic.partitions
    return partition


async def snapshot_part(controller: QuorumController, snapshot: Any, **fields: Any) -> Any:
    snapshot_id = {"end_offset": snapshot.end_offset, "epoch": snapshot.epoch}
    partition = {"current_leader_epoch": EPOCH, "snapshot_id": snapshot_id, **fields}
    body = request_message(ApiKey.FETCH_SNAPSHOT).struct_class(
        cluster_id=CLUSTER_ID,
        max_bytes=100,
        topics=[{"name": "__cluster_metadata", "partitions": [partition]}],
    )
    answer = await controller.node.respond(ApiKey.FETCH_SNAPSHOT, 1, body, listener=LISTENER)
    [topic] = response_message(ApiKey.FETCH_SNAPSHOT).struct_class(**answer).topics
    return topic.partitions[0]


async def test_fetch_from_offset_0_gets_every_batch(tmp_path: Path) -> None:
    node = Node(tmp_path)
    controller = await node.start()
    await node.create(controller, new_topic("t", 3))
    partition = partition_of(await fetch(controller))
    assert partition.records == Files().read_file(f"{node.log_directory}/00000000000000000000.log")
    assert partition.high_watermark == controller.follower.image.offset
    assert (partition.current_leader.leader_id, partition.current_leader.leader_epoch) == (1, EPOCH)
    last = [header for _, header in iterate_batches(partition.records)][-1]
    # Only whole batches are returned, however long, and no more than requested.
    first = partition_of(await fetch(controller, partition_max_bytes=1))
    assert len(list(iterate_batches(first.records))) == 1
    at_last: dict[str, Any] = {"fetch_offset": last.base_offset, "last_fetched_epoch": EPOCH}
    last_partition = partition_of(await fetch(controller, **at_last))
    assert [header.base_offset for _, header in iterate_batches(last_partition.records)] == [
        last.base_offset
    ]
    await controller.close()


async def test_fetch_at_the_end_waits_for_records(tmp_path: Path) -> None:
    node = Node(tmp_path)
    controller = await node.start()
    end = controller.follower.image.offset
    fetch_position = {"fetch_offset": end, "last_fetched_epoch": EPOCH, "high_watermark": end}
    assert not partition_of(await fetch(controller, wait_ms=1, **fetch_position)).records
    waiting = asyncio.ensure_future(fetch(controller, wait_ms=30_000, **fetch_position))
    await next_turn()
    assert not waiting.done()
    await node.create(controller, new_topic("t", 1))
    async with asyncio.timeout(PATIENCE_S):
        partition = partition_of(await waiting)
    # Records are replicated before they are committed.
    assert partition.records
    assert partition.high_watermark == end
    # A follower with all records and an old high watermark gets an immediate response.
    end = controller.follower.image.offset
    fetch_position = {"fetch_offset": end, "last_fetched_epoch": EPOCH, "high_watermark": end - 1}
    partition = partition_of(await fetch(controller, wait_ms=30_000, **fetch_position))
    assert (partition.high_watermark, bytes(partition.records)) == (end, b"")
    waiting = asyncio.ensure_future(
        fetch(controller, wait_ms=30_000, **fetch_position | {"high_watermark": end})
    )
    await next_turn()
    await controller.close()
    async with asyncio.timeout(PATIENCE_S):
        assert (await waiting).error_code == ErrorCode.BROKER_NOT_AVAILABLE


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"current_leader_epoch": 0}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"current_leader_epoch": 2}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ({"current_leader_epoch": -1}, ErrorCode.INVALID_REQUEST),
        ({"last_fetched_epoch": -1}, ErrorCode.INVALID_REQUEST),
        ({"last_fetched_epoch": EPOCH + 7}, ErrorCode.INVALID_REQUEST),
        ({"fetch_offset": -1}, ErrorCode.INVALID_REQUEST),
    ],
)
async def test_invalid_fetch_position_is_refused(
    tmp_path: Path, fields: dict[str, Any], error: ErrorCode
) -> None:
    controller = await Node(tmp_path).start()
    partition = partition_of(await fetch(controller, **fields))
    assert (ErrorCode(partition.error_code), partition.current_leader.leader_epoch) == (error, 1)
    await controller.close()


async def test_fetch_of_another_cluster_or_topic_is_refused(tmp_path: Path) -> None:
    controller = await Node(tmp_path).start()
    answer = await fetch(controller, cluster_id="another")
    assert answer.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
    answer = await fetch(controller, topic_id=bytes(16))
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    await controller.close()


async def test_diverging_fetcher_gets_the_offset_to_truncate_to(tmp_path: Path) -> None:
    controller = await Node(tmp_path).start()
    end = controller.follower.image.offset
    beyond = partition_of(await fetch(controller, fetch_offset=end + 5, last_fetched_epoch=EPOCH))
    assert (beyond.diverging_epoch.epoch, beyond.diverging_epoch.end_offset) == (EPOCH, end)
    assert not beyond.records
    await controller.close()


async def test_fetcher_before_the_log_start_loads_a_snapshot_in_chunks(tmp_path: Path) -> None:
    node = snapshotting(tmp_path)
    controller = await node.start()
    for number in range(8):
        await node.create(controller, new_topic(f"t{number}", 3))
        await settle(controller)
    assert controller.node._log.store.start_offset > 0
    snapshot = partition_of(await fetch(controller)).snapshot_id
    content = b""
    size = 1
    while len(content) < size:
        part = await snapshot_part(controller, snapshot, position=len(content))
        assert part.error_code == 0
        size, content = part.size, content + bytes(part.unaligned_records)
    assert len(content) == size
    assert read_snapshot(content).batches
    late = await snapshot_part(controller, snapshot, position=size)
    assert late.error_code == ErrorCode.POSITION_OUT_OF_RANGE
    old = SimpleNamespace(end_offset=1, epoch=1)
    missing = await snapshot_part(controller, old, position=0)
    assert missing.error_code == ErrorCode.SNAPSHOT_NOT_FOUND
    # The log is read from the end of the snapshot.
    fetch_position = {"fetch_offset": snapshot.end_offset, "last_fetched_epoch": snapshot.epoch}
    partition = partition_of(await fetch(controller, **fetch_position))
    assert partition.snapshot_id.end_offset == -1
    assert partition.diverging_epoch.epoch == -1
    assert partition.log_start_offset == snapshot.end_offset
    await controller.close()


async def test_quorum_description_lists_observers_with_offsets(tmp_path: Path) -> None:
    controller = await Node(tmp_path).start()
    await fetch(controller, fetch_offset=3, last_fetched_epoch=EPOCH)
    metadata = {"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}
    body = request_message(ApiKey.DESCRIBE_QUORUM).struct_class(topics=[metadata])
    answer = await controller.handle(ControllerRequest(ApiKey.DESCRIBE_QUORUM, 2, body))
    [observer] = answer["topics"][0]["partitions"][0]["observers"]
    assert (observer["replica_id"], observer["replica_directory_id"]) == (5, DIRECTORY)
    assert (observer["log_end_offset"], observer["last_caught_up_timestamp"]) == (3, -1)
    await controller.close()
