"""Transactions on a whole broker: markers, restarts, timeouts, and waits."""

import asyncio
import contextlib

import pytest

from tests.support.brokers.servers import ONE_NODE, broker_of, client_of, running
from tests.support.protocol.requests import create_topic, delete_topic, fetch_request
from tests.support.protocol.transactional_producer import TransactionalProducer, error_of
from tests.support.tools.waiting import PATIENCE_S, until
from wirebroker.base.clock import next_turn, pause
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.batch import iterate_batches
from wirebroker.coordination.internal_topic import InternalTopic
from wirebroker.coordinator.groups.partitions import CONSUMER_OFFSETS, TRANSACTION_STATE
from wirebroker.coordinator.transactions.shard import TransactionShard
from wirebroker.quorum.channel.producer_id_supply import ProducerIdSupply

UNSTABLE = ErrorCode.UNSTABLE_OFFSET_COMMIT


class Client:
    def __init__(self, server, raw):
        self.broker = broker_of(server)
        self.raw = raw
        self.id = TransactionalProducer("t")

    @property
    def producer(self):
        return self.id.producer

    async def init(self, *, timeout_ms=60_000):
        self.id.timeout_ms = timeout_ms
        await self.id.begin(self.raw.ask)

    async def produce(self, *partitions, topic="a"):
        values = {(topic, index): [b"v"] for index in partitions}
        # With the current time; otherwise markers would be in separate segments (log.roll.ms).
        ask = self.id.produce(values, timestamp_ms=self.broker.clock.now_ms())
        answer = await self.raw.ask(*ask)
        errors = [partition.error_code for partition in answer.responses[0].partition_responses]
        return errors[0] if len(set(errors)) == 1 else errors

    async def commit_offset(self, offset):
        ask = self.id.commit_offsets({"group_id": "g"}, "a", {0: offset})
        return error_of(ask.key, await self.raw.ask(*ask))

    async def committed(self, *, is_stable=True):
        request = {
            "group_id": "g",
            "topics": [{"name": "a", "partition_indexes": [0]}],
            "require_stable": is_stable,
        }
        answer = await self.raw.ask(ApiKey.OFFSET_FETCH, 7, request)
        assert answer.error_code == 0
        [partition] = answer.topics[0].partitions
        return partition.error_code or partition.committed_offset

    async def end(self, *, is_commit=True):
        answer = await self.raw.ask(*self.id.end(is_commit=is_commit))
        if answer.error_code == 0:
            self.id.ended(answer)
        return answer.error_code

    def state(self):
        return self.broker.transactions.shard_of("t").find("t").state.label

    async def until_loaded(self, *, groups=0):
        def is_loaded():
            with contextlib.suppress(KafkaError):
                is_complete = len(list(self.broker.groups.shards())) == groups
                return self.broker.transactions.shards() and is_complete
            return False

        await until(is_loaded)

    async def until_state(self, state):
        await until(lambda: self.state() == state)

    def log(self, index=0, topic="a"):
        partitions, _ = self.broker.replicas.find(topic, b"", by_id=False)
        return partitions[index].log

    def markers(self, index=0, topic="a"):
        log = self.log(index, topic)
        result = log.read(0, 1 << 20, up_to_offset=log.log_end_offset)
        data = b"" if result.slice is None else result.slice.read()
        return sum(header.is_control for _, header in iterate_batches(data))


@contextlib.asynccontextmanager
async def broker(directory, **settings):
    dotted = {name.replace("_", "."): value for name, value in settings.items()}
    async with running(directory, settings=ONE_NODE | dotted) as server, client_of(server) as raw:
        yield Client(server, raw)


async def with_groups(client):
    find = {"key_type": 0, "coordinator_keys": ["g"]}
    while (await client.raw.ask(ApiKey.FIND_COORDINATOR, 4, find)).coordinators[0].error_code:
        await pause(0.001)


@pytest.mark.parametrize("durability", ["os", "fsync"])
async def test_each_partition_gets_one_marker_and_each_transaction_a_new_epoch(
    tmp_path, durability
):
    async with broker(tmp_path, wirebroker_durability=durability) as client:
        await create_topic(client.raw, "a", 2)
        await client.init()
        for count in (1, 2, 3):
            assert await client.produce(0, 1) == 0
            assert await client.end(is_commit=count != 2) == 0
            assert client.producer == (0, count)
            await client.until_state("CompleteAbort" if count == 2 else "CompleteCommit")
            assert [client.markers(index) for index in (0, 1)] == [count, count]
            assert client.log().last_stable_offset == client.log().log_end_offset


async def test_markers_for_many_partitions_are_written_by_a_task(tmp_path):
    async with broker(tmp_path) as client:
        await create_topic(client.raw, "a", 120)
        await client.init()
        assert await client.produce(*range(120)) == 0
        assert await client.end() == 0
        await client.until_state("CompleteCommit")
        assert [client.markers(index) for index in range(120)] == [1] * 120


async def test_prepared_commit_is_completed_after_a_restart(tmp_path):
    async with broker(tmp_path) as client:
        await create_topic(client.raw, "a", 1)
        await client.init()
        await client.produce(0)
        partitions, _ = client.broker.replicas.find("a", b"", by_id=False)
        async with partitions[0].append_lock:  # a thread is appending to the log
            assert await client.end() == 0
            assert (client.state(), client.markers()) == ("PrepareCommit", 0)
            await client.broker.transactions.stop()
        producer = client.producer
    async with broker(tmp_path) as client:
        await client.until_loaded()
        await client.until_state("CompleteCommit")
        assert client.markers() == 1
        client.id.producer = producer
        assert await client.produce(0) == 0


async def test_partition_that_fails_to_load_has_no_coordinator(tmp_path, monkeypatch, caplog):
    def fail(*_):
        raise ValueError("a fault of the code")

    async with broker(tmp_path) as client:
        await client.init()
    monkeypatch.setattr(TransactionShard, "replay", fail)
    async with broker(tmp_path) as client:
        await until(lambda: "cannot load" in caplog.text)
        request = {"transactional_id": "t", "transaction_timeout_ms": 60_000}
        answer = await client.raw.ask(ApiKey.INIT_PRODUCER_ID, 5, request)
        assert answer.error_code == ErrorCode.NOT_COORDINATOR


async def test_many_prepared_transactions_complete_in_slices(tmp_path):
    class Slow:
        """Each clock reading takes 2 ms."""

        now = 0.0

        def now_ms(self):
            return 1

        def monotonic(self):
            self.now += 0.002
            return self.now

    async with broker(tmp_path) as client:
        await create_topic(client.raw, "a", 1)
        await client.init()
        [engine] = client.broker.transactions._partitions.active()
        first = engine.machine.find("t").with_partitions(
            frozenset({("a", 0)}), now_ms=1, client_version=2
        )
        decided = first.prepared(is_commit=True, now_ms=1, client_version=2, next_producer_id=-1)
        for index in range(20):
            transaction = decided._replace(transactional_id=f"t{index}", producer_id=100 + index)
            engine.run(lambda shard, *_, transaction=transaction: shard.move(transaction))
        client.broker.transactions.markers._clock = Slow()
        engine.begin()
        assert 0 < client.markers() < 20
        await until(lambda: client.markers() == 20)
        states = {
            name: transaction.state.label for name, transaction in engine.machine.recorded.items()
        }
        assert states.pop("t") == "Empty"
        assert set(states.values()) == {"CompleteCommit"}


async def test_open_transaction_survives_a_restart(tmp_path):
    async with broker(tmp_path) as client:
        await create_topic(client.raw, "a", 1)
        await with_groups(client)
        await client.init()
        await client.produce(0)
        assert await client.commit_offset(5) == 0
        assert await client.committed() == UNSTABLE
        producer, sequences = client.producer, client.id.sequences
    async with broker(tmp_path) as client:
        client.id.producer, client.id.sequences = producer, sequences
        await client.until_loaded(groups=1)
        assert await client.produce(0) == 0
        assert (await client.committed(), await client.committed(is_stable=False)) == (
            UNSTABLE,
            -1,
        )
        assert client.log().last_stable_offset == 0
        assert await client.end() == 0
        await client.until_state("CompleteCommit")
        assert await client.committed() == 5
        assert client.log().last_stable_offset == 3


async def test_timed_out_transaction_is_aborted(tmp_path):
    interval = "transaction.abort.timed.out.transaction.cleanup.interval.ms"
    async with broker(tmp_path, **{interval: "5"}) as client:
        await create_topic(client.raw, "a", 1)
        await client.init(timeout_ms=1)
        assert await client.produce(0) == 0
        await client.until_state("CompleteAbort")
        assert client.markers() == 1
        assert await client.produce(0) == ErrorCode.INVALID_PRODUCER_EPOCH
        old = client.producer
        await client.init()
        assert client.producer == (old[0], old[1] + 2)


@pytest.mark.parametrize("is_timeout", [True, False])
async def test_transaction_ends_without_a_new_producer_id(tmp_path, monkeypatch, is_timeout):
    async def fail(_supply):
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)

    async with broker(tmp_path) as client:
        await create_topic(client.raw, "a", 1)
        await client.init(timeout_ms=1)
        assert await client.produce(0) == 0
        producer = client.producer
    monkeypatch.setattr(ProducerIdSupply, "_allocate", fail)
    async with broker(tmp_path) as client:
        client.id.producer = producer
        await client.until_loaded()
        if is_timeout:
            await until(lambda: client.broker.clock.now_ms() > _updated(client) + 1)
            await client.broker.transactions.abort_timed_out()
        else:
            assert await client.end() == 0
        await client.until_state("CompleteAbort" if is_timeout else "CompleteCommit")
        assert client.markers() == 1


async def test_fenced_marker_does_not_block_other_partitions(tmp_path):
    async with broker(tmp_path) as client:
        await create_topic(client.raw, "a", 5)
        await client.init()
        assert await client.produce(*range(5)) == 0
        producer_id, epoch = client.producer
        marker = {
            "producer_id": producer_id,
            "producer_epoch": epoch + 9,
            "topics": [{"name": "a", "partition_indexes": [0, 3]}],
            "coordinator_epoch": 0,
        }
        await client.raw.ask(ApiKey.WRITE_TXN_MARKERS, 1, {"markers": [marker]})
        assert await client.end() == 0
        assert [client.markers(index) for index in range(5)] == [1] * 5
        logs = [client.log(index) for index in range(5)]
        assert all(log.last_stable_offset == log.log_end_offset for log in logs)


async def test_deleted_partition_gets_no_marker(tmp_path):
    async with broker(tmp_path) as client:
        await create_topic(client.raw, "a", 1)
        await create_topic(client.raw, "b", 1)
        await client.init()
        await client.produce(0)
        await client.produce(0, topic="b")
        await delete_topic(client.raw, "b")
        assert await client.end() == 0
        await client.until_state("CompleteCommit")
        assert client.markers() == 1


async def test_internal_topic_cannot_be_added_to_a_transaction(tmp_path):
    async with broker(tmp_path) as client:
        await create_topic(client.raw, "a", 1)
        await client.init()
        request = {
            "v3_and_below_transactional_id": "t",
            "v3_and_below_producer_id": client.producer[0],
            "v3_and_below_producer_epoch": client.producer[1],
            "v3_and_below_topics": [
                {"name": name, "partitions": [0]} for name in ("a", TRANSACTION_STATE)
            ],
        }
        answer = await client.raw.ask(ApiKey.ADD_PARTITIONS_TO_TXN, 3, request)
        errors = {
            topic.name: topic.results_by_partition[0].partition_error_code
            for topic in answer.results_by_topic_v3_and_below
        }
        assert errors == {
            "a": ErrorCode.OPERATION_NOT_ATTEMPTED,
            TRANSACTION_STATE: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        }
        assert client.state() == "Empty"


async def test_next_transaction_waits_for_pending_markers(tmp_path):
    async with broker(tmp_path) as client:
        await create_topic(client.raw, "a", 2)
        await client.init()
        await client.produce(0)
        partitions, _ = client.broker.replicas.find("a", b"", by_id=False)
        async with partitions[0].append_lock:  # a thread is appending to the log
            assert await client.end() == 0
            assert client.state() == "PrepareCommit"
            assert await client.produce(1) == ErrorCode.CONCURRENT_TRANSACTIONS
            client.id.sequences.clear()
        await client.until_state("CompleteCommit")
        assert await client.produce(1) == 0
        assert client.markers() == 1


async def test_produce_during_marker_writes_succeeds_soon(tmp_path):
    longest = "add.partitions.to.txn.retry.backoff.max.ms"
    async with broker(tmp_path, **{longest: "30000"}) as client:
        await create_topic(client.raw, "a", 2)
        await client.init()
        await client.produce(0)
        partitions, _ = client.broker.replicas.find("a", b"", by_id=False)
        async with partitions[0].append_lock:
            assert await client.end() == 0
            producing = asyncio.create_task(client.produce(1))
            for _ in range(100):
                await next_turn()
            assert not producing.done()
        assert await producing == 0


async def test_write_txn_markers_completes_pending_offset_commits(tmp_path):
    async with broker(tmp_path) as client:
        await create_topic(client.raw, "a", 1)
        await with_groups(client)
        await client.init()
        assert await client.commit_offset(5) == 0
        producer_id, epoch = client.producer
        marker = {
            "producer_id": producer_id,
            "producer_epoch": epoch,
            "transaction_result": True,
            "topics": [{"name": CONSUMER_OFFSETS, "partition_indexes": [0, 1]}],
            "coordinator_epoch": 0,
        }
        answer = await client.raw.ask(ApiKey.WRITE_TXN_MARKERS, 1, {"markers": [marker]})
        [topic] = answer.markers[0].topics
        assert [partition.error_code for partition in topic.partitions] == [
            0,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]
        assert await client.committed() == 5


async def test_failed_completion_record_is_retried(tmp_path):
    async with broker(tmp_path) as client:
        await create_topic(client.raw, "a", 2)
        await client.init()
        await client.produce(0)
        state, _ = client.broker.replicas.find(TRANSACTION_STATE, b"", by_id=False)
        partitions, _ = client.broker.replicas.find("a", b"", by_id=False)
        async with partitions[0].append_lock:
            assert await client.end() == 0
            await state[0].append_lock.acquire()  # simulates a large append
        await until(lambda: client.markers() == 1)
        for _ in range(10):
            await next_turn()
        assert client.state() == "PrepareCommit"
        state[0].append_lock.release()
        await client.until_state("CompleteCommit")
        assert client.markers() == 1


async def test_unused_transactional_ids_expire(tmp_path):
    async with broker(tmp_path, **{"transactional.id.expiration.ms": "1"}) as client:
        await client.init()
        await until(lambda: client.broker.clock.now_ms() > _updated(client) + 1)
        await client.broker.transactions.expire()
        assert not client.broker.transactions.shard_of("t").recorded


def _updated(client):
    return client.broker.transactions.shard_of("t").find("t").updated_ms


async def test_read_committed_hides_open_transactions(tmp_path):
    async with broker(tmp_path) as client:
        await create_topic(client.raw, "a", 1)
        await client.init()
        await client.produce(0)
        request = fetch_request({("a", 0): 0}, isolation_level=1)
        answer = await client.raw.ask(ApiKey.FETCH, 12, request)
        [partition] = answer.responses[0].partitions
        assert (partition.records or b"", partition.last_stable_offset) == (b"", 0)
        await client.end(is_commit=False)
        await client.until_state("CompleteAbort")
        answer = await client.raw.ask(ApiKey.FETCH, 12, request)
        [partition] = answer.responses[0].partitions
        assert partition.last_stable_offset == 2
        [aborted] = partition.aborted_transactions
        assert (aborted.producer_id, aborted.first_offset) == (0, 0)


async def test_no_marker_is_written_after_the_stop(monkeypatch, tmp_path):
    async with running(tmp_path, settings=ONE_NODE) as server:
        coordinator = broker_of(server).transactions

        async def stop(_topic):
            task = asyncio.create_task(pause(PATIENCE_S))
            coordinator.markers._tasks.add(task)

        with monkeypatch.context() as patches:
            patches.setattr(InternalTopic, "stop", stop)
            await coordinator.stop()
        (task,) = coordinator.markers._tasks
        assert task.cancelled()
