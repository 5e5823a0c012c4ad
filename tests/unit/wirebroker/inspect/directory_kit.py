"""A data directory with every kind of file, and functions that run the commands on it.

plain-0      three segments, uncompressed and compressed batches, an idempotent producer,
             a committed and two aborted transactions
compact-0    a topic with cleanup.policy=compact
__consumer_offsets-0, __cluster_metadata-0 (with a snapshot)
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.support.brokers.servers import broker_of, running
from tests.support.coordinators.kit import new_topic, request
from wirebroker.cli import main as cli
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.coordinator_records import (
    CommittedOffset,
    group_metadata_record,
    offset_commit_record,
)
from wirebroker.codecs.records.batch import build_batch
from wirebroker.codecs.records.codec import Codec
from wirebroker.coordinator.controller.requests.request import Requester
from wirebroker.storage.log.append import AppendOrigin
from wirebroker.storage.log.markers import prepare_end_marker

if TYPE_CHECKING:
    from pathlib import Path

    from wirebroker.api.broker import Broker
    from wirebroker.storage.log.log import Log

NOW = 1_700_000_000_000
TOPICS = ("plain", "compact", "__consumer_offsets")
COUNT = 30


async def create_topics(broker: Broker, topics: list[Any]) -> None:
    body = request(topics=topics)
    answer = await broker.controller.forward(ApiKey.CREATE_TOPICS, 7, body, Requester())
    assert not any(topic.get("error_code") for topic in answer["topics"])


async def fill(directory: Path) -> None:
    async with running(directory) as server:
        broker = broker_of(server)
        topics = [
            new_topic("plain"),
            new_topic("compact", configs={"cleanup.policy": "compact"}),
            new_topic("__consumer_offsets"),
        ]
        await create_topics(broker, topics)
        logs = {replica.topic: replica.log for replica in broker.replicas}
        assert set(logs) >= set(TOPICS)
        fill_plain(logs["plain"])
        append(logs["compact"], [(b"k%d" % number, b"v", ()) for number in range(COUNT)])
        fill_offsets(logs["__consumer_offsets"])


def fill_plain(log: Log) -> None:
    for number in range(COUNT):
        value = b"value %d " % number * 40
        append(
            log,
            [(b"key", value, [("header", b"\xff")])] * 5,
            timestamp_ms=NOW + number * 1000,
            codec=Codec(number % 5),
            producer_id=7 if number % 2 else -1,
            producer_epoch=0 if number % 2 else -1,
            base_sequence=number // 2 * 5 if number % 2 else -1,
        )
        if number in {10, 20}:
            log.roll(now_ms=NOW)
    for producer_id, is_commit in ((8, True), (9, False), (10, False)):
        append(
            log,
            [(None, b"transactional", ())],
            timestamp_ms=NOW + 100_000,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            is_transactional=True,
        )
        plan = prepare_end_marker(
            log,
            producer_id=producer_id,
            producer_epoch=0,
            coordinator_epoch=0,
            is_commit=is_commit,
            transaction_version=0,
            leader_epoch=0,
            now_ms=NOW + 100_000,
        )
        log.write(plan)
        log.commit(plan)


def fill_offsets(log: Log) -> None:
    records = [
        offset_commit_record("group", "plain", 0, CommittedOffset(5, 0, "note", NOW)),
        group_metadata_record("group", protocol_type="consumer", generation=3),
    ]
    append(log, [(key, value, ()) for key, value in records])


def append(log: Log, records: list[Any], *, timestamp_ms: int = NOW, **fields: Any) -> None:
    """Append one batch as the broker's own coordinators do."""
    batch = memoryview(build_batch(records, timestamp_ms=timestamp_ms, **fields))
    guard = None
    if fields.get("is_transactional"):
        guard = log.producer_state.begin_verification(
            fields["producer_id"],
            sequence=0,
            producer_epoch=0,
            supports_epoch_bump=False,
            now_ms=NOW,
        )
    log.append_as_leader(
        batch,
        leader_epoch=max(0, log.leader_epochs.latest_epoch),
        now_ms=NOW,
        origin=AppendOrigin.COORDINATOR,
        guard=guard,
    )
    log.set_high_watermark(log.log_end_offset)


def rows(capsys: Any, *arguments: object) -> tuple[int, list[dict[str, Any]]]:
    """Run a command with --json; return its exit status and the parsed output."""
    status, text = run(capsys, *arguments, "--json")
    return status, [json.loads(line) for line in text.splitlines()]


def run(capsys: Any, *arguments: object) -> tuple[int, str]:
    capsys.readouterr()
    status = cli.run([str(argument) for argument in arguments])
    printed = capsys.readouterr()
    assert not printed.err
    return status, printed.out


def contents(directory: Path) -> dict[str, bytes]:
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }
