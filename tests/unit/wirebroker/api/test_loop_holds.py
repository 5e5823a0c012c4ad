"""Limits the work of each turn of the event loop, however large the request.

The broker runs in a thread on a watched loop (loop_watch.py), and the client sends prepared frames
from this one, so only the broker's function calls are counted. Requests and slices have an eighth
of their size. With --measure-holds they have their full size, and the longest turn of each test is
printed at the end instead; it should be under 20 ms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.support.brokers.servers import broker_of
from tests.support.harness.request_sizes import EIGHTH, LARGEST
from tests.support.protocol.raw_client import answer_of, request_frame
from tests.support.protocol.requests import fetch_request, produce_request
from tests.support.protocol.transactional_producer import TransactionalProducer, error_of
from tests.support.records.batches import batch
from tests.support.tools.waiting import until
from tests.unit.wirebroker.api.loop_holds_kit import (
    MANY_BATCHES,
    MANY_TOPICS,
    MOST_PARTITIONS,
    PATIENCE_S,
    WatchedBroker,
    garbage,
    is_measured,
    new_topic,
    nightly,
    watched_broker,
)
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import KafkaError
from wirebroker.maintenance.maintenance import Maintenance

if TYPE_CHECKING:
    from collections.abc import Callable


# Fixtures for the whole module.
__all__ = ["garbage", "is_measured"]

BIG = "big"


@pytest.fixture(scope="module")
def broker(tmp_path_factory, garbage, is_measured):
    """A broker with one topic of many partitions and many topics of one partition."""
    directory = tmp_path_factory.mktemp("data")
    sizes = LARGEST if is_measured else EIGHTH
    with watched_broker(directory, garbage, sizes, is_measured=is_measured) as watched:
        watched.create([new_topic(BIG, sizes.of(MOST_PARTITIONS))])
        topics = sizes.of(MANY_TOPICS)
        watched.create([new_topic(f"small-{number}", 1) for number in range(topics)])
        # So many new objects would be examined once, in a turn of a test.
        garbage.keep_all()
        yield watched


def test_creating_and_deleting_the_largest_topic(tmp_path, garbage, is_measured):
    sizes = LARGEST if is_measured else EIGHTH
    with watched_broker(tmp_path, garbage, sizes, is_measured=is_measured) as broker:
        broker.create([new_topic("created", sizes.of(MOST_PARTITIONS))])
        broker.delete(["created"])


def test_creating_many_topics(broker):
    names = [f"created-{number}" for number in range(broker.sizes.of(MANY_TOPICS))]
    broker.create([new_topic(name, 1) for name in names])
    broker.delete(names)


@pytest.mark.parametrize("version", [*nightly(0, 9), 13])
def test_metadata_of_everything(broker, version):
    answer = broker.ask(ApiKey.METADATA, version, {"topics": [] if version == 0 else None})
    least = broker.sizes.of(MOST_PARTITIONS) + broker.sizes.of(MANY_TOPICS)
    assert sum(len(topic.partitions) for topic in answer.topics) >= least


def test_metadata_of_many_topics_that_do_not_exist(broker):
    names = range(broker.sizes.of(10_000))
    topics = [{"name": f"nobody-has-heard-of-{number}"} for number in names]
    answer = broker.ask(ApiKey.METADATA, 12, {"topics": topics})
    assert {topic.error_code for topic in answer.topics} == {3}


def everything(broker: WatchedBroker) -> dict[tuple[str | bytes, int], int]:
    return {(BIG, index): 0 for index in broker.partitions}


def test_a_full_fetch_of_all_partitions(broker):
    answer = broker.ask(ApiKey.FETCH, 12, fetch_request(everything(broker)))
    assert len(answer.responses[0].partitions) == len(broker.partitions)


def test_a_fetch_session_of_all_partitions(broker):
    answer = broker.ask(ApiKey.FETCH, 12, fetch_request(everything(broker), session=(0, 0)))
    session_id = answer.session_id
    assert session_id != 0
    epochs = iter(range(1, 100))

    def poll(**fields: Any) -> None:
        request = fetch_request({}, session=(session_id, next(epochs)), **fields)
        assert broker.client.ask(ApiKey.FETCH, 12, request).error_code == 0

    broker.assert_short(poll)
    broker.assert_short(lambda: poll(max_wait_ms=50))


def test_listing_many_offsets(broker):
    for timestamp in (-1, -2, 1_700_000_000_000):
        partitions = [
            {"partition_index": index, "timestamp": timestamp} for index in broker.partitions
        ]
        request = {"replica_id": -1, "topics": [{"name": BIG, "partitions": partitions}]}
        answer = broker.ask(ApiKey.LIST_OFFSETS, 7, request)
        assert {partition.error_code for partition in answer.topics[0].partitions} == {0}


def test_producing_to_many_partitions(broker):
    records = {(BIG, index): batch(b"value") for index in broker.few_partitions}
    answer = broker.ask(ApiKey.PRODUCE, 12, produce_request(records))
    assert {result.error_code for result in answer.responses[0].partition_responses} == {0}


@pytest.fixture(scope="module")
def offsets_of_big(broker):
    broker.create([new_topic("__consumer_offsets", 1, cleanup_policy="compact")])
    offsets = [
        {"partition_index": index, "committed_offset": 7, "committed_metadata": ""}
        for index in broker.partitions
    ]
    return [{"name": BIG, "partitions": offsets}]


def test_committing_and_fetching_many_offsets(broker, offsets_of_big):
    request = {"group_id": "g", "topics": offsets_of_big}
    answer = broker.ask(ApiKey.OFFSET_COMMIT, 8, request)
    assert {done.error_code for done in answer.topics[0].partitions} == {0}
    request = {"groups": [{"group_id": "g", "topics": None}]}
    answer = broker.ask(ApiKey.OFFSET_FETCH, 8, request)
    assert len(answer.groups[0].topics[0].partitions) == len(broker.partitions)


class Ask(NamedTuple):
    """A request whose frame is encoded before the loop is watched."""

    key: ApiKey
    version: int
    frame: bytes

    @classmethod
    def of(cls, key: ApiKey, version: int, request: dict[str, Any]) -> Ask:
        return cls(key, version, request_frame(key, version, request))


class TransactionalClient:
    """A transactional producer."""

    def __init__(self, broker: WatchedBroker) -> None:
        self.broker = broker
        self.transactions = broker_of(broker.server.server).transactions
        self.id = TransactionalProducer("t")

    def begin(self) -> None:
        answer = self.broker.client.ask(*self.id.init())
        assert answer.error_code == 0
        self.id.become(answer)

    def add(self, indexes: range) -> Ask:
        return Ask.of(*self.id.add_partitions(BIG, indexes))

    def produce(self, indexes: range) -> Ask:
        self.id.sequences.clear()  # after each new epoch
        return Ask.of(*self.id.produce({(BIG, index): [b"value"] for index in indexes}))

    def add_group(self) -> Ask:
        return Ask.of(*self.id.add_group("of t"))

    def commit_offsets(self, topics: list[dict[str, Any]]) -> Ask:
        key, _, request = self.id.commit_offsets({"group_id": "of t"}, BIG, {})
        return Ask.of(key, 3, {**request, "topics": topics})

    def end(self, version: int, *, is_commit: bool) -> Ask:
        key, _, request = self.id.end(is_commit=is_commit)
        return Ask.of(key, version, request)

    def assert_short(self, make: Callable[[], list[Ask]]) -> None:
        requests = make()
        answers: list[bytes] = []

        def work() -> None:
            answers.extend(self.broker.client.exchange(request.frame) for request in requests)
            shard = self.transactions.shard_of("t")
            self.broker.server.call(
                until(lambda: not shard.find("t").partitions, timeout_s=PATIENCE_S)
            )

        self.broker.assert_short(work)
        for (key, version, _), answer in zip(requests, answers, strict=True):
            self.check(key, version, answer_of(key, version, answer))

    def check(self, key: ApiKey, version: int, answer: Any) -> None:
        assert error_of(key, answer) == 0
        if key is ApiKey.END_TXN and version >= 5:
            self.id.ended(answer)


@pytest.fixture(scope="module")
def transactional(broker):
    broker.create([new_topic("__transaction_state", 1, cleanup_policy="compact")])
    client = TransactionalClient(broker)

    def is_served() -> bool:
        try:
            return bool(client.transactions.shards())
        except KafkaError:
            return False

    broker.server.call(until(is_served, timeout_s=PATIENCE_S))
    client.begin()
    return client


def ends_of_big(broker: WatchedBroker) -> list[int]:
    partitions, _ = broker_of(broker.server.server).replicas.find(BIG, b"", by_id=False)
    return [partition.log.log_end_offset for _, partition in sorted(partitions.items())]


@pytest.mark.parametrize("is_commit", [True, *nightly(False)])
def test_a_transaction_of_all_partitions(broker, transactional, is_commit):
    ends = ends_of_big(broker)
    transactional.assert_short(
        lambda: [
            transactional.add(broker.partitions),
            transactional.end(3, is_commit=is_commit),
        ]
    )
    for before, after in zip(ends, ends_of_big(broker), strict=True):
        assert after > before


def test_a_transaction_that_grows(broker, transactional):
    size = len(broker.partitions) // 10
    transactional.assert_short(
        lambda: [
            *(transactional.add(broker.partitions[size * part :][:size]) for part in range(10)),
            transactional.end(3, is_commit=True),
        ]
    )


@pytest.mark.parametrize("is_commit", [True, *nightly(False)])
def test_producing_to_many_partitions_in_a_transaction(broker, transactional, is_commit):
    transactional.assert_short(
        lambda: [
            transactional.produce(broker.few_partitions),
            transactional.end(5, is_commit=is_commit),
        ]
    )


@pytest.mark.parametrize("is_commit", [True, *nightly(False)])
def test_committing_many_offsets_in_a_transaction(transactional, offsets_of_big, is_commit):
    transactional.assert_short(
        lambda: [
            transactional.add_group(),
            transactional.commit_offsets(offsets_of_big),
            transactional.end(3, is_commit=is_commit),
        ]
    )


def test_describing_a_transaction_of_all_partitions(broker, transactional):
    broker.client.exchange(transactional.add(broker.partitions).frame)
    answer = broker.ask(ApiKey.DESCRIBE_TRANSACTIONS, 0, {"transactional_ids": ["t"]})
    (state,) = answer.transaction_states
    assert sum(len(topic.partitions) for topic in state.topics) == len(broker.partitions)
    transactional.assert_short(lambda: [transactional.end(3, is_commit=False)])


def test_deleting_the_records_of_all_partitions(broker):
    partitions = [{"partition_index": index, "offset": -1} for index in broker.partitions]
    request = {"topics": [{"name": BIG, "partitions": partitions}], "timeout_ms": 1000}
    answer = broker.ask(ApiKey.DELETE_RECORDS, 2, request)
    assert {done.error_code for done in answer.topics[0].partitions} == {0}


def test_retention_checks_and_checkpoints_of_all_partitions(broker):
    count = broker.sizes.of(MANY_BATCHES)
    broker.create([new_topic("old", count, retention_ms="1")])
    records = {("old", index): batch(b"value", timestamp_ms=1) for index in range(count)}

    def expire() -> None:
        answer = broker.client.ask(ApiKey.PRODUCE, 12, produce_request(records))
        assert {result.error_code for result in answer.responses[0].partition_responses} == {0}
        server = broker.server.server
        maintenance = Maintenance(broker_of(server))
        for duty in (maintenance.retention.check_all, maintenance.checkpoint):
            broker.server.call(duty())

    broker.assert_short(expire)
    partitions, _ = broker_of(broker.server.server).replicas.find("old", b"", by_id=False)
    assert {partition.log.size_bytes for partition in partitions.values()} == {0}
    broker.delete(["old"])


def test_moving_leadership_of_all_partitions(broker):
    metadata = broker_of(broker.server.server).metadata
    lifecycle = broker.server.server.lifecycle

    async def stop_and_start() -> None:
        await lifecycle.shut_down()
        await lifecycle.unfence()

    broker.assert_short(lambda: broker.server.call(stop_and_start()))
    partitions = metadata.image.topics[BIG].partitions.values()
    assert {partition.leader for partition in partitions} == {1}
    assert all(partition.leader_epoch >= 2 for partition in partitions)
