"""Limits the work of each turn of the event loop for share groups (see test_loop_holds.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.brokers.servers import broker_of
from tests.support.harness.request_sizes import EIGHTH, LARGEST
from tests.support.protocol.raw_client import BlockingClient, answer_of, request_frame
from tests.support.protocol.requests import produce_request
from tests.support.protocol.share_client import SHARE_NODE, MemoryPersister
from tests.support.records.batches import batch
from tests.support.tools.waiting import until
from tests.transcripts.raw_records import batch_of
from tests.unit.wirebroker.api.loop_holds_kit import (
    MOST_PARTITIONS,
    PATIENCE_S,
    WatchedBroker,
    garbage,
    is_measured,
    new_topic,
    smallest_records,
    watched_broker,
)
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from wirebroker.share.share_partition_manager import SharePartitionManager

# Fixtures for the whole module.
__all__ = ["garbage", "is_measured"]

VERSION = 2
MANY_STATES = 9_000
# The most elements of an array in a request.
MANY_ELEMENTS = 80_000
MANY_SESSIONS = 1_900
ACCEPT, RELEASE = 1, 2


@pytest.fixture(scope="module")
def broker(tmp_path_factory, garbage, is_measured):
    """A broker with a large topic, whose share partitions use a MemoryPersister."""
    directory = tmp_path_factory.mktemp("data")
    sizes = LARGEST if is_measured else EIGHTH
    settings = {
        **SHARE_NODE,
        "group.share.max.partition.max.record.locks": "10000",
        "group.share.partition.max.record.locks": "10000",
    }
    with watched_broker(
        directory, garbage, sizes, is_measured=is_measured, settings=settings
    ) as watched:
        persister: Any = MemoryPersister()
        shares = shares_of(watched)
        shares._loader._persister = persister
        shares._writer._persister = persister
        create(watched, "big", sizes.of(MOST_PARTITIONS))
        garbage.keep_all()
        yield watched


def create(broker: WatchedBroker, name: str, partitions: int) -> None:
    """Create a topic; test_loop_holds.py limits the work of that."""
    request = {"topics": [new_topic(name, partitions)], "timeout_ms": 60_000}
    (topic,) = broker.client.ask(ApiKey.CREATE_TOPICS, 7, request).topics
    assert topic.error_code == 0


def shares_of(broker: WatchedBroker) -> SharePartitionManager:
    return broker_of(broker.server.server).shares


def topic_id(broker: WatchedBroker, name: str) -> bytes:
    found = broker_of(broker.server.server).metadata.image.topics[name].topic_id
    assert isinstance(found, bytes)
    return found


class Member:
    """A member with its own connection."""

    def __init__(self, broker: WatchedBroker, topic: str, group: str, name: str = "m") -> None:
        self.broker = broker
        self.client = BlockingClient(broker.server.address, timeout_s=300)
        self.topic_id = topic_id(broker, topic)
        self.group = group
        self.name = name
        self.epoch = 0

    def body(
        self, partitions: Iterable[int], batches: Sequence[dict[str, Any]] = (), **fields: Any
    ) -> dict[str, Any]:
        entries = [
            {"partition_index": index, "acknowledgement_batches": batches} for index in partitions
        ]
        self.epoch += 1
        return {
            "group_id": self.group,
            "member_id": self.name,
            "share_session_epoch": self.epoch - 1,
            "topics": [{"topic_id": self.topic_id, "partitions": entries}],
            **fields,
        }

    def ask(self, key: ApiKey, body: dict[str, Any]) -> Any:
        frame = request_frame(key, VERSION, body)
        answers: list[bytes] = []
        self.broker.assert_short(lambda: answers.append(self.client.exchange(frame)))
        answer = answer_of(key, VERSION, answers[-1])
        assert answer.error_code == 0
        return answer

    def fetch(self, partitions: Iterable[int], **fields: Any) -> Any:
        limits = {
            "max_wait_ms": 0,
            "min_bytes": 1,
            "max_bytes": 50 << 20,
            "max_records": 10_000,
            "batch_size": 10_000,
        }
        return self.ask(ApiKey.SHARE_FETCH, self.body(partitions, **{**limits, **fields}))

    def acknowledge(self, partitions: Iterable[int], *batches: dict[str, Any]) -> Any:
        return self.ask(ApiKey.SHARE_ACKNOWLEDGE, self.body(partitions, batches))

    def leave(self) -> None:
        """Close the connection; wait until the session has ended."""
        shares = shares_of(self.broker)
        self.broker.assert_short(self._close_and_wait(shares))

    def _close_and_wait(self, shares: SharePartitionManager) -> Any:
        def work() -> None:
            self.client.close()
            self.broker.server.call(
                until(
                    lambda: not shares.sessions and not shares.shares and not shares._writer._tasks,
                    timeout_s=PATIENCE_S,
                )
            )

        return work


def acknowledgement(first: int, last: int, types: Sequence[int]) -> dict[str, Any]:
    return {"first_offset": first, "last_offset": last, "acknowledge_types": list(types)}


def test_a_session_of_all_partitions(broker):
    member = Member(broker, "big", "all")
    partitions = broker.partitions
    answer = member.fetch(partitions)
    assert len(answer.responses[0].partitions) == len(partitions)
    member.fetch((), max_wait_ms=50)
    answer = member.acknowledge(partitions, acknowledgement(0, 0, [ACCEPT]))
    assert len(answer.responses[0].partitions) == len(partitions)
    forgotten = [{"topic_id": member.topic_id, "partitions": list(partitions)}]
    member.fetch(partitions, forgotten_topics_data=forgotten)
    member.leave()


def test_many_sessions_of_a_connection(broker):
    member = Member(broker, "big", "sessions")
    for number in range(broker.sizes.of(MANY_SESSIONS)):
        member.epoch = 0
        member.name = f"m{number}"
        request = member.body(range(4), max_wait_ms=0, max_records=1, max_bytes=1)
        assert member.client.ask(ApiKey.SHARE_FETCH, VERSION, request).error_code == 0
    member.leave()


def produced(broker: WatchedBroker, name: str, batches: Sequence[bytes]) -> None:
    create(broker, name, 1)
    for data in batches:
        request = produce_request({(name, 0): data})
        answer = broker.client.ask(ApiKey.PRODUCE, 12, request)
        assert answer.responses[0].partition_responses[0].error_code == 0


def test_a_batch_of_alternating_states(broker):
    count = broker.sizes.of(MANY_STATES)
    produced(broker, "alternating", [batch_of(*smallest_records(count))])
    member = Member(broker, "alternating", "alternating")
    last = count - 1
    for _ in range(2):
        answer = member.fetch([0], max_wait_ms=5_000)
        assert len(answer.responses[0].partitions[0].acquired_records) >= 1
        alternating = acknowledgement(0, last, ([ACCEPT, RELEASE] * count)[:count])
        member.acknowledge([0], alternating)
    member.fetch([0])
    shares = shares_of(broker)
    (share,) = shares.shares
    for batch_in_flight in share.state.records:
        for state in batch_in_flight.states:
            state.deadline_ms = state.deadline_ms and 1.0
    timers = share.state.timers
    timers._heap = [timer._replace(deadline_ms=1.0) for timer in timers._heap]
    shares.locks._due = [(1.0, number, watched) for _, number, watched in shares.locks._due]
    shares.locks._next_ms = dict.fromkeys(shares.locks._next_ms, 1.0)
    before = broker_of(broker.server.server).metrics.share_lock_timeouts
    broker.assert_short(lambda: broker.server.call(shares.locks.release_expired()))
    assert broker_of(broker.server.server).metrics.share_lock_timeouts > before
    member.leave()


def test_many_small_batches(broker):
    count = broker.sizes.of(MANY_STATES)
    data = batch(b"a")
    produced(broker, "small", [data] * count)
    member = Member(broker, "small", "small")
    member.fetch([0], batch_size=1, max_wait_ms=5_000)
    each = [acknowledgement(offset, offset, [RELEASE]) for offset in range(count)]
    member.acknowledge([0], *each)
    member.fetch([0], max_records=1)
    member.leave()


def test_many_batches_and_types_that_are_refused(broker):
    count = broker.sizes.of(MANY_ELEMENTS)
    member = Member(broker, "big", "refused")
    member.fetch([0])
    member.acknowledge([0], *[acknowledgement(number, number, [1]) for number in range(count)])
    member.acknowledge([0], acknowledgement(0, count - 1, [1, 2] * (count // 2)))
    forgotten = [{"topic_id": member.topic_id, "partitions": [7] * count}]
    member.fetch((), forgotten_topics_data=forgotten)
    member.leave()


STATE_KEYS = {
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: {"state_epoch": 1, "start_offset": 0},
    ApiKey.WRITE_SHARE_GROUP_STATE: {"state_epoch": 1, "leader_epoch": 0, "start_offset": 0},
    ApiKey.READ_SHARE_GROUP_STATE: {"leader_epoch": 0},
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: {"leader_epoch": 0},
    ApiKey.DELETE_SHARE_GROUP_STATE: {},
}


@pytest.fixture(scope="module")
def coordinator(broker):
    """The same broker, once its share coordinator is loaded."""
    own = broker_of(broker.server.server)

    async def is_ready() -> None:
        await own.share_coordinator.create_topic()
        await until(
            lambda: any(True for _ in own.share_coordinator._partitions.active()),
            timeout_s=PATIENCE_S,
        )

    broker.server.call(is_ready())
    return broker


def state_request(
    broker: WatchedBroker, key: ApiKey, partitions: Iterable[int], **fields: Any
) -> Any:
    entries = [{"partition": index, **STATE_KEYS[key], **fields} for index in partitions]
    topics = [{"topic_id": topic_id(broker, "big"), "partitions": entries}]
    answer = broker.ask(key, 0, {"group_id": "states", "topics": topics})
    results = [result for topic in answer.results for result in topic.partitions]
    assert {result.error_code for result in results} == {0}
    return results


def test_states_of_all_partitions(coordinator):
    state_batch = {"first_offset": 0, "last_offset": 5, "delivery_state": 2, "delivery_count": 1}
    for key in STATE_KEYS:
        is_write = key is ApiKey.WRITE_SHARE_GROUP_STATE
        fields = {"state_batches": [state_batch]} if is_write else {}
        results = state_request(coordinator, key, coordinator.partitions, **fields)
        assert len(results) == len(coordinator.partitions)


def test_a_write_of_many_batches(coordinator):
    count = coordinator.sizes.of(10_000)
    batches = [
        {"first_offset": n, "last_offset": n, "delivery_state": n % 2 * 2, "delivery_count": 1}
        for n in range(count)
    ]
    state_request(coordinator, ApiKey.INITIALIZE_SHARE_GROUP_STATE, [0])
    for _ in range(2):
        state_request(coordinator, ApiKey.WRITE_SHARE_GROUP_STATE, [0], state_batches=batches)
    (result,) = state_request(coordinator, ApiKey.READ_SHARE_GROUP_STATE, [0])
    assert len(result.state_batches) == count
    state_request(coordinator, ApiKey.DELETE_SHARE_GROUP_STATE, [0])
