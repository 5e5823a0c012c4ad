"""Dead letters on a broker with sockets; transcripts compare their records with Kafka's."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.protocol.requests import append, create_topic, fetch
from tests.support.protocol.share_client import share_broker
from tests.support.records.batches import batch, records_in
from tests.support.tools.waiting import until
from wirebroker.base.clock import SystemClock
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.config import Config
from wirebroker.coordinator.controller.image.cluster_image import ClusterImage, ResourceType
from wirebroker.coordinator.share_partitions.record_state import InFlightState, RecordState
from wirebroker.coordinator.share_partitions.state_change import CLIENT_REJECT, DeadRecords
from wirebroker.net.client.errors import ConnectionLostError
from wirebroker.share import dead_letters
from wirebroker.share.dead_letter_sender import DeadLetterSender
from wirebroker.share.dead_letter_topic import destination, topic_problem

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.protocol.raw_client import RawClient
    from tests.support.protocol.share_client import ShareBroker

REJECT = 3


async def configure(client: RawClient, **configs: str) -> None:
    alterations = [
        {"name": name.replace("_", "."), "config_operation": 0, "value": value}
        for name, value in configs.items()
    ]
    resource = {"resource_type": ResourceType.GROUP, "resource_name": "g", "configs": alterations}
    answer = await client.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, {"resources": [resource]})
    assert answer.responses[0].error_code == 0


async def rejecting(share: ShareBroker, *batches: tuple[int, int, list[int]]) -> None:
    ann = await share.member("ann")
    await ann.acquired()
    assert (await ann.acknowledge(*batches)).error_code == 0


async def test_many_dead_letters_are_written_in_several_batches(tmp_path: Path):
    async with share_broker(tmp_path) as share:
        client = await share.client()
        enabled = {"errors_deadletterqueue_group_enable": "true", "max_message_bytes": "2000"}
        await create_topic(client, "dlq.g", **enabled)
        await configure(
            client,
            errors_deadletterqueue_topic_name="dlq.g",
            errors_deadletterqueue_copy_record_enable="true",
        )
        await append(client, "t", batch(*[b"v%d" % number for number in range(50)]))
        await rejecting(share, (0, 49, [REJECT]))
        await until(lambda: share.broker.metrics.dead_letters == 50)
        result = await fetch(client, "dlq.g", 0)
        letters = list(records_in(result.records))
        assert [record.value for _, record in letters] == [b"v%d" % n for n in range(50)]
        assert max(header.size for header, _ in letters) <= 2_000
        (share_partition,) = share.shares.shares
        await until(lambda: not share_partition.dead)
        assert share.persister.writes[-1].start_offset == 0


@pytest.mark.parametrize("copies", ["true", "false"])
@pytest.mark.parametrize(
    "ranges",
    [
        pytest.param(((7, 7), (2, 3)), id="the later range first"),
        pytest.param(((9, 9), (8, 8), (0, 0)), id="descending"),
        pytest.param(((3, 5), (0, 1), (8, 9), (6, 6)), id="mixed"),
    ],
)
async def test_ranges_in_any_order_get_one_letter_each(
    tmp_path: Path, ranges: tuple[tuple[int, int], ...], copies: str
):
    async with share_broker(tmp_path) as share:
        client = await share.client()
        await create_topic(client, "dlq.g", errors_deadletterqueue_group_enable="true")
        await configure(
            client,
            errors_deadletterqueue_topic_name="dlq.g",
            errors_deadletterqueue_copy_record_enable=copies,
        )
        await append(client, "t", batch(*[b"v%d" % number for number in range(10)]))
        ann = await share.member("ann")
        await ann.acquired()
        (share_partition,) = share.shares.shares
        dead = [
            DeadRecords(InFlightState(first, last, RecordState.ARCHIVING, 1), CLIENT_REJECT)
            for first, last in ranges
        ]
        letters: Any = share.shares._writer._dead_letters
        await letters.write(share_partition.key, share_partition.partition, dead)
        result = await fetch(client, "dlq.g", 0)
        written = [record for _, record in records_in(result.records)]
    offsets = [offset for first, last in sorted(ranges) for offset in range(first, last + 1)]
    headers = [dict(record.headers) for record in written]
    assert [int(found["__dlq.errors.offset"] or b"") for found in headers] == offsets
    values = [b"v%d" % offset if copies == "true" else None for offset in offsets]
    assert [record.value for record in written] == values
    assert share.broker.metrics.dead_letters == len(offsets)


async def test_records_are_archived_although_the_topic_is_missing(tmp_path: Path):
    async with share_broker(tmp_path) as share:
        client = await share.client()
        await configure(client, errors_deadletterqueue_topic_name="dlq.g")
        await append(client, "t", batch(b"a", b"b"))
        await rejecting(share, (0, 1, [REJECT]))
        await until(lambda: share.broker.metrics.failed_dead_letters == 2)
        (share_partition,) = share.shares.shares
        await until(lambda: share_partition.state.start_offset == 2)


def image_with(**topics: dict[str, str]) -> Any:
    return SimpleNamespace(topics=topics, topic_config=lambda name: topics.get(name, {}))


@pytest.mark.parametrize(
    ("topic", "settings", "problem"),
    [
        ("", {}, "is empty"),
        ("__dlq", {}, "cannot start with __"),
        ("dlq.closed", {}, "DLQ is not enabled"),
        ("dlq.none", {}, "auto create is disabled"),
        ("open", {}, "prefix: dlq."),
        ("dlq.open", {}, None),
        ("open", {"errors.deadletterqueue.topic.name.prefix": ""}, None),
        ("dlq.none", {"errors.deadletterqueue.auto.create.topics.enable": "true"}, None),
    ],
)
def test_topic_must_be_meant_for_dead_letters(
    topic: str, settings: dict[str, str], problem: str | None
):
    enabled = {"errors.deadletterqueue.group.enable": "true"}
    image = image_with(**{"dlq.closed": {}, "open": enabled, "dlq.open": enabled})
    found = topic_problem(Config({"log.dirs": "data", **settings}), image, "g", topic)
    assert found is None if problem is None else problem in (found or "")


def test_destination_needs_a_leader():
    assert destination(ClusterImage(), "dlq.g", 0) is None
    partitions: dict[int, Any] = {
        0: SimpleNamespace(index=0, leader=1),
        1: SimpleNamespace(index=1, leader=-1),
    }
    image: Any = SimpleNamespace(topics={"dlq.g": SimpleNamespace(partitions=partitions)})
    assert destination(image, "dlq.g", 2) is partitions[0]
    assert destination(image, "dlq.g", 3) is None


class ScriptedNode:
    """Another broker, with an error code or an exception for each request."""

    def __init__(self, *outcomes: int | Exception) -> None:
        self.outcomes = list(outcomes)
        self.bodies: list[Any] = []

    async def request(self, key: ApiKey, body: Any, *, timeout_s: float) -> Any:
        assert (key, timeout_s) == (ApiKey.PRODUCE, 30.0)
        self.bodies.append(body)
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        result = SimpleNamespace(error_code=outcome, error_message="told to")
        return SimpleNamespace(responses=[SimpleNamespace(partition_responses=[result])])


async def test_other_leaders_get_a_produce_request():
    node: Any = ScriptedNode(
        0, int(ErrorCode.NOT_LEADER_OR_FOLLOWER), ConnectionLostError("b", "x")
    )
    replicas: Any = SimpleNamespace(node_id=1)
    sender = DeadLetterSender(replicas, lambda _: node, SystemClock())
    topic: Any = SimpleNamespace(name="dlq.g", topic_id=b"d" * 16)
    partition: Any = SimpleNamespace(index=4, leader=2)
    await sender.send(topic, partition, bytearray(b"batch"))
    (sent,) = node.bodies[0]["topic_data"]
    assert (node.bodies[0]["acks"], sent["topic_id"]) == (-1, b"d" * 16)
    assert sent["partition_data"] == [{"index": 4, "records": b"batch"}]
    for code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NETWORK_EXCEPTION):
        with pytest.raises(KafkaError) as raised:
            await sender.send(topic, partition, bytearray(b"batch"))
        assert raised.value.code == code
    unknown = DeadLetterSender(replicas, lambda _: None, SystemClock())
    with pytest.raises(KafkaError) as raised:
        await unknown.send(topic, partition, bytearray(b"batch"))
    assert raised.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_retriable_errors_are_retried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(dead_letters, "_FIRST_DELAY_S", 0.001)
    async with share_broker(tmp_path) as share:
        client = await share.client()
        await create_topic(client, "dlq.g", errors_deadletterqueue_group_enable="true")
        await configure(client, errors_deadletterqueue_topic_name="dlq.g")
        await append(client, "t", batch(b"a", b"b"))
        letters: Any = share.shares._writer._dead_letters
        send = letters._sender.send
        codes = [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NETWORK_EXCEPTION]

        async def failing(*arguments: Any) -> None:
            if codes:
                raise KafkaError(codes.pop())
            await send(*arguments)

        letters._sender = SimpleNamespace(send=failing)
        await rejecting(share, (0, 1, [REJECT]))
        await until(lambda: share.broker.metrics.dead_letters == 2)
        assert not codes
