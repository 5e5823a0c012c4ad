"""Limits the work of each turn of the event loop, however large the request.

The broker runs in a thread on a watched loop (loop_watch.py), and the client sends prepared frames
from this one, so only the broker's function calls are counted. Requests and slices have a quarter
of their size. With --measure-holds they have their full size, and the longest turn of each test is
printed at the end instead; it should be under 20 ms.
"""

from __future__ import annotations

import contextlib
import functools
import os
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.support.brokers.servers import ThreadedServer, broker_of, config_of, memory_directory
from tests.support.harness.request_sizes import LARGEST, QUARTER, RequestSizes
from tests.support.harness.turn_work import TurnWork
from tests.support.protocol.raw_client import BlockingClient, answer_of, request_frame
from tests.support.protocol.requests import fetch_request, produce_request
from tests.support.protocol.transactional_producer import TransactionalProducer, error_of
from tests.support.records.batches import batch
from tests.support.tools.waiting import until
from tests.transcripts.raw_records import batch_of, record
from wirebroker.base.gc_tuning import GarbagePolicy
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import KafkaError
from wirebroker.maintenance.maintenance import Maintenance

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# All for RequestSizes.of.
# Most calls in one turn. A slice of 5 ms (clock.Slices) makes a third of them, because a counted
# call takes over 0.15 us. Code that does not yield makes ten or more for each of 10,000 items.
MOST_CALLS = 100_000

# The most records that one request may write, including the topic's own.
MOST_PARTITIONS = 9_999
MANY_TOPICS = 1_000
MANY_BATCHES = 2_000
# As many minimal records as a 1 MiB batch holds: 150 ms to parse in Python.
MOST_RECORDS = 100_000

BIG = "big"
# Ten thousand partitions take longer on a busy machine.
_PATIENCE_S = 120.0


# The longest turn of each test in milliseconds of CPU and wall time, with --measure-holds.
measured: dict[str, tuple[float, float]] = {}


@pytest.fixture(autouse=True, scope="module")
def is_measured(request):
    """Return whether turns are measured; if so, print their lengths at the end."""
    if request.config.getoption("--measure-holds"):
        yield True
        writer = request.config.get_terminal_writer()
        writer.line("\n the longest turn: ms of CPU, ms by the wall")
        for name, (cpu_ms, wall_ms) in measured.items():
            writer.line(f"{cpu_ms:6.1f} {wall_ms:6.1f}  {name}")
        return
    yield False


class WatchedBroker:
    """A broker in a thread, with one client."""

    def __init__(self, server: ThreadedServer, sizes: RequestSizes, *, is_measured: bool) -> None:
        self.server = server
        self.sizes = sizes
        self.client = BlockingClient(server.address, timeout_s=300)
        self._work = None if is_measured else TurnWork(server.watch)

    @property
    def partitions(self) -> range:
        """All partitions of the largest topic."""
        return range(self.sizes.of(MOST_PARTITIONS))

    @property
    def few_partitions(self) -> range:
        """As many partitions as a large Produce has."""
        return range(self.sizes.of(MANY_BATCHES))

    def assert_short(self, work: Callable[[], Any]) -> None:
        if self._work is None:
            self._measure(work)
            return
        self.server.call(self._work.begin())
        work()
        self.server.call(self._work.end())
        assert 0 < self._work.largest < self.sizes.of(MOST_CALLS)

    def _measure(self, work: Callable[[], Any]) -> None:
        histograms = (self.server.watch.cpu_holds_ms, self.server.watch.holds_ms)

        async def reset() -> None:
            for histogram in histograms:
                histogram.reset()

        self.server.call(reset())
        work()
        name = os.environ["PYTEST_CURRENT_TEST"].rpartition("::")[2].removesuffix(" (call)")
        cpu_ms, wall_ms = measured.get(name, (0.0, 0.0))
        measured[name] = (
            max(cpu_ms, histograms[0].largest),
            max(wall_ms, histograms[1].largest),
        )

    def ask(self, key: ApiKey, version: int, request: dict[str, Any]) -> Any:
        """Send the request as `assert_short` does and return the last response, decoded."""
        frame = request_frame(key, version, request)
        answers: list[bytes] = []
        self.assert_short(lambda: answers.append(self.client.exchange(frame)))
        return answer_of(key, version, answers[-1])

    def create(self, topics: list[dict[str, Any]]) -> None:
        frame = request_frame(ApiKey.CREATE_TOPICS, 7, {"topics": topics, "timeout_ms": 60_000})
        answers: list[bytes] = []
        self.assert_short(lambda: answers.append(self.client.exchange(frame)))
        answer = answer_of(ApiKey.CREATE_TOPICS, 7, answers[0])
        assert [topic.error_code for topic in answer.topics] == [0] * len(topics)

    def delete(self, names: list[str]) -> None:
        topics = [{"name": name} for name in names]
        request = {"topics": topics, "timeout_ms": 60_000}
        frame = request_frame(ApiKey.DELETE_TOPICS, 6, request)
        answers: list[bytes] = []
        self.assert_short(lambda: answers.append(self.client.exchange(frame)))
        answer = answer_of(ApiKey.DELETE_TOPICS, 6, answers[0])
        assert [topic.error_code for topic in answer.responses] == [0] * len(names)


def new_topic(name: str, partitions: int, **configs: str) -> dict[str, Any]:
    settings = [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()]
    return {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": 1,
        "configs": settings,
    }


@pytest.fixture(autouse=True, scope="module")
def garbage():
    """Use the broker's garbage collection policy once for the whole process.

    Ending it unfreezes all objects, and the next full collection walks the 10,999 partitions.
    """
    with GarbagePolicy() as policy:
        yield policy


@contextlib.contextmanager
def watched_broker(
    directory, garbage: GarbagePolicy, sizes: RequestSizes, *, is_measured: bool
) -> Iterator[WatchedBroker]:
    with (
        sizes.limits(),
        memory_directory(directory) as data,
        ThreadedServer(config_of(data), _PATIENCE_S) as server,
    ):
        garbage.keep_all()
        watched = WatchedBroker(server, sizes, is_measured=is_measured)
        yield watched
        watched.client.close()


@pytest.fixture(scope="module")
def broker(tmp_path_factory, garbage, is_measured):
    """A broker with one topic of many partitions and many topics of one partition."""
    directory = tmp_path_factory.mktemp("data")
    sizes = LARGEST if is_measured else QUARTER
    with watched_broker(directory, garbage, sizes, is_measured=is_measured) as watched:
        watched.create([new_topic(BIG, sizes.of(MOST_PARTITIONS))])
        topics = sizes.of(MANY_TOPICS)
        watched.create([new_topic(f"small-{number}", 1) for number in range(topics)])
        yield watched


def _nightly(*values: Any) -> list[Any]:
    """Return parameters of further variants."""
    return [pytest.param(value, marks=pytest.mark.nightly) for value in values]


def test_creating_and_deleting_the_largest_topic(tmp_path, garbage, is_measured):
    with watched_broker(tmp_path, garbage, LARGEST, is_measured=is_measured) as broker:
        broker.create([new_topic("created", MOST_PARTITIONS)])
        broker.delete(["created"])


def test_creating_many_topics(broker):
    names = [f"created-{number}" for number in range(broker.sizes.of(MANY_TOPICS))]
    broker.create([new_topic(name, 1) for name in names])
    broker.delete(names)


@pytest.mark.parametrize("version", [*_nightly(0, 9), 13])
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
                until(lambda: not shard.find("t").partitions, timeout_s=_PATIENCE_S)
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

    broker.server.call(until(is_served, timeout_s=_PATIENCE_S))
    client.begin()
    return client


def ends_of_big(broker: WatchedBroker) -> list[int]:
    partitions, _ = broker_of(broker.server.server).replicas.find(BIG, b"", by_id=False)
    return [partition.log.log_end_offset for _, partition in sorted(partitions.items())]


@pytest.mark.parametrize("is_commit", [True, *_nightly(False)])
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


@pytest.mark.parametrize("is_commit", [True, *_nightly(False)])
def test_producing_to_many_partitions_in_a_transaction(broker, transactional, is_commit):
    transactional.assert_short(
        lambda: [
            transactional.produce(broker.few_partitions),
            transactional.end(5, is_commit=is_commit),
        ]
    )


@pytest.mark.parametrize("is_commit", [True, *_nightly(False)])
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


@functools.cache
def smallest_records(count: int) -> list[bytes]:
    return [record(None, key=None, offset=index) for index in range(count)]


@pytest.mark.parametrize("codec", [*_nightly("none"), "zstd"])
def test_a_batch_of_very_many_records(broker, codec):
    name = f"many-records-{codec}"
    broker.create([new_topic(name, 1)])
    data = batch_of(*smallest_records(broker.sizes.of(MOST_RECORDS)), codec=codec)
    answer = broker.ask(ApiKey.PRODUCE, 12, produce_request({(name, 0): data}))
    assert {result.error_code for result in answer.responses[0].partition_responses} == {0}


def bomb(codec: str, size: int) -> bytes:
    """Return a small batch of one record that unpacks to this many bytes."""
    return batch_of(record("x" * size), codec=codec)


@pytest.mark.parametrize("codec", [*_nightly("gzip", "lz4"), "zstd"])
def test_a_small_batch_that_unpacks_to_a_very_large_one(broker, codec):
    name = f"bombs-{codec}"
    broker.create([new_topic(name, 1)])
    records = {(name, 0): bomb(codec, broker.sizes.of(100 << 20))}
    answer = broker.ask(ApiKey.PRODUCE, 12, produce_request(records))
    assert {result.error_code for result in answer.responses[0].partition_responses} == {0}


def test_small_batch_that_unpacks_beyond_the_limit(broker):
    broker.create([new_topic("too-large", 1)])
    smallest = smallest_records(broker.sizes.of(MOST_RECORDS))
    data = batch_of(*smallest, record("x" * (129 << 20), offset=len(smallest)), codec="zstd")
    answer = broker.ask(ApiKey.PRODUCE, 12, produce_request({("too-large", 0): data}))
    assert {result.error_code for result in answer.responses[0].partition_responses} == {10}


@pytest.mark.parametrize("size", [*_nightly(1 << 20), 2 << 20])
def test_a_request_of_many_batches_that_unpack_to_large_ones(broker, size):
    name = f"small-bombs-{size}"
    broker.create([new_topic(name, 100)])
    data = bomb("gzip", broker.sizes.of(size))
    records = {(name, index): data for index in range(100)}
    answer = broker.ask(ApiKey.PRODUCE, 12, produce_request(records))
    assert {result.error_code for result in answer.responses[0].partition_responses} == {0}


def test_a_request_of_many_batches_of_many_records(broker):
    broker.create([new_topic("many-batches", 100)])
    data = batch_of(*smallest_records(broker.sizes.of(2_500)))
    records = {("many-batches", index): data for index in range(100)}
    answer = broker.ask(ApiKey.PRODUCE, 12, produce_request(records))
    assert {result.error_code for result in answer.responses[0].partition_responses} == {0}


@pytest.mark.parametrize("target", [*_nightly("gzip", "lz4"), "zstd"])
def test_a_batch_that_is_recompressed(broker, target):
    name = f"recompressed-{target}"
    broker.create([new_topic(name, 1, compression_type=target)])
    smallest = smallest_records(broker.sizes.of(MOST_RECORDS))
    last = record("x" * broker.sizes.of(50 << 20), offset=len(smallest))
    data = batch_of(*smallest, last, codec="snappy")
    answer = broker.ask(ApiKey.PRODUCE, 12, produce_request({(name, 0): data}))
    assert {result.error_code for result in answer.responses[0].partition_responses} <= {0, 10}


def test_very_many_records_that_are_refused(broker):
    broker.create([new_topic("refused", 1, cleanup_policy="compact")])
    data = batch_of(*smallest_records(broker.sizes.of(MOST_RECORDS)), codec="zstd")
    answer = broker.ask(ApiKey.PRODUCE, 12, produce_request({("refused", 0): data}))
    (result,) = answer.responses[0].partition_responses
    assert result.error_code == 87
    assert len(result.record_errors) == broker.sizes.of(4096)


def test_very_many_records_that_are_refused_in_many_partitions(broker):
    count = broker.sizes.of(300)
    broker.create([new_topic("all-refused", count, cleanup_policy="compact")])
    data = batch_of(*smallest_records(broker.sizes.of(5_000)), codec="zstd")
    records = {("all-refused", index): data for index in range(count)}
    answer = broker.ask(ApiKey.PRODUCE, 12, produce_request(records))
    results = answer.responses[0].partition_responses
    assert {(result.error_code, bool(result.error_message)) for result in results} == {(87, True)}
    assert sum(len(result.record_errors) for result in results) == broker.sizes.of(4096)


@pytest.mark.parametrize("codec", [*_nightly("none"), "gzip"])
def test_a_record_of_very_many_headers(broker, codec):
    name = f"many-headers-{codec}"
    broker.create([new_topic(name, 1)])
    data = batch_of(record(headers=[("", None)] * broker.sizes.of(400_000)), codec=codec)
    answer = broker.ask(ApiKey.PRODUCE, 12, produce_request({(name, 0): data}))
    assert {result.error_code for result in answer.responses[0].partition_responses} == {0}


def test_very_long_frame_does_not_block_the_loop(broker):
    size = broker.sizes.of(90 << 20)
    broker.create([new_topic("huge", 1, max_message_bytes=str(100 << 20))])
    value = os.urandom(1 << 20) * (size >> 20)
    frame = request_frame(ApiKey.PRODUCE, 9, produce_request({("huge", 0): batch(value)}))
    versions = request_frame(ApiKey.API_VERSIONS, 0, {})
    other = BlockingClient(broker.server.address)

    def send() -> None:
        part = broker.sizes.of(10 << 20)
        for begin in range(0, len(frame), part):
            broker.client.push(frame[begin : begin + part])
            other.exchange(versions)
        answer = answer_of(ApiKey.PRODUCE, 9, broker.client.read_frame())
        assert answer.responses[0].partition_responses[0].error_code == 0

    broker.assert_short(send)
    other.close()


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
