"""Clients of a broker that will crash; each records its requests and their times.

A client sends one request at a time, so at most one is in doubt. Its record alone determines what
must hold: everything acknowledged before the crash, and perhaps that one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tests.support.protocol.requests import PRODUCE_VERSION, produce_request
from tests.support.records.batches import batch
from wirebroker.base.clock import pause
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from random import Random

    from tests.crash.broker_process import BrokerProcess

_TOPIC_RESOURCE = 2
_SET = 0
COMMIT_VERSION = 8
FETCH_OFFSETS_VERSION = 7
_PRODUCE_AT_ONCE = 4
_OFFSETS_TOPIC = "__consumer_offsets"
_MOST_TRIES = 300  # of 0.1 s each


class Step(NamedTuple):
    begun: int  # disk events when it was sent
    answered: int | None  # disk events at the response; None: no response
    kind: str
    detail: Any = None


class TopicState(NamedTuple):
    life: int = 0  # number of its creations
    exists: bool = False
    partition_count: int = 0
    retention: str | None = None
    topic_id: bytes = b""
    records: tuple[tuple[int, int, bytes], ...] = ()  # partition, offset, value
    starts: tuple[tuple[int, int], ...] = ()  # partition, log start offset


def topic_after(steps: Iterable[Step]) -> TopicState:
    state = TopicState()
    for step in steps:
        detail = step.detail
        if step.kind == "create":
            count, retention, topic_id = detail
            state = TopicState(state.life + 1, True, count, retention, topic_id)
        elif step.kind == "delete":
            state = TopicState(state.life)
        elif step.kind == "grow":
            state = state._replace(partition_count=detail)
        elif step.kind == "alter":
            state = state._replace(retention=detail)
        elif step.kind == "produce":
            state = state._replace(records=(*state.records, detail))
        elif step.kind == "delete records":
            state = state._replace(starts=(*state.starts, detail))
    return state


class Book:
    """The steps of one client, in order."""

    def __init__(self, events: Callable[[], int]) -> None:
        self.steps: list[Step] = []
        self._events = events

    async def take(self, kind: str, detail: Any, answer: Any) -> Any:
        """Wait for a response, and record the times of request and response."""
        index = len(self.steps)
        self.steps.append(Step(self._events(), None, kind, detail))
        result = await answer
        self.steps[index] = self.steps[index]._replace(answered=self._events())
        return result

    def amend(self, detail: Any) -> None:
        """Add the result of the last response."""
        self.steps[-1] = self.steps[-1]._replace(detail=detail)

    def at(self, event: int) -> tuple[list[Step], list[Step]]:
        """Return the steps acknowledged before an event, and the same with the one in doubt."""
        done = [step for step in self.steps if step.answered is not None and step.answered <= event]
        started = [step for step in self.steps if step.begun <= event]
        return done, started


class TopicClient:
    """Creates, fills, changes and deletes one topic repeatedly."""

    def __init__(self, name: str, random: Random, events: Callable[[], int]) -> None:
        self.name = name
        self.book = Book(events)
        self._random = random
        self._number = 0

    async def work(self, broker: BrokerProcess, steps: int) -> None:
        for _ in range(steps):
            await pause(self._random.choice([0, 0, 0.02, 0.5]))
            state = topic_after(self.book.steps)
            if not state.exists:
                await self._create(broker)
                continue
            kinds = [self._produce, self._delete, self._grow, self._alter, self._delete_records]
            await self._random.choices(kinds, [12, 1, 0.7, 0.7, 1.5])[0](broker, state)

    async def _create(self, broker: BrokerProcess, *, keeps_all: bool = False) -> None:
        count = self._random.randint(1, 3)
        retention = None if keeps_all else self._random.choice([None, "900", "5000"])
        configs = [] if retention is None else [{"name": "retention.bytes", "value": retention}]
        topic = {
            "name": self.name,
            "num_partitions": count,
            "replication_factor": 1,
            "configs": configs,
        }
        answer = await self.book.take(
            "create",
            (count, retention, b""),
            broker.ask(ApiKey.CREATE_TOPICS, 7, {"topics": [topic], "timeout_ms": 30_000}),
        )
        assert answer.topics[0].error_code == ErrorCode.NONE, answer
        self.book.amend((count, retention, _uuid(answer.topics[0].topic_id)))

    async def _delete(self, broker: BrokerProcess, state: TopicState) -> None:
        del state
        request = {"topic_names": [self.name], "timeout_ms": 30_000}
        answer = await self.book.take("delete", None, broker.ask(ApiKey.DELETE_TOPICS, 1, request))
        assert answer.responses[0].error_code == ErrorCode.NONE, answer

    async def _grow(self, broker: BrokerProcess, state: TopicState) -> None:
        count = state.partition_count + 1
        topic = {"name": self.name, "count": count, "assignments": None}
        request = {"topics": [topic], "timeout_ms": 30_000}
        answer = await self.book.take(
            "grow", count, broker.ask(ApiKey.CREATE_PARTITIONS, 0, request)
        )
        assert answer.results[0].error_code == ErrorCode.NONE, answer

    async def _alter(self, broker: BrokerProcess, state: TopicState) -> None:
        del state
        value = str(self._random.randrange(700, 9_000))
        config = {"name": "retention.bytes", "config_operation": _SET, "value": value}
        resource = {
            "resource_type": _TOPIC_RESOURCE,
            "resource_name": self.name,
            "configs": [config],
        }
        answer = await self.book.take(
            "alter",
            value,
            broker.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, {"resources": [resource]}),
        )
        assert answer.responses[0].error_code == ErrorCode.NONE, answer

    async def _produce(self, broker: BrokerProcess, state: TopicState) -> None:
        for _ in range(self._random.randint(1, _PRODUCE_AT_ONCE)):
            partition = self._random.randrange(state.partition_count)
            self._number += 1
            value = f"{self.name}/{state.life}/{partition}/{self._number}".encode()
            value += bytes(self._random.choice([0, 0, 300]))
            records = batch(value, timestamp_ms=broker.clock.now_ms())
            answer = await self.book.take(
                "produce",
                (partition, -1, value),
                broker.ask(
                    ApiKey.PRODUCE,
                    PRODUCE_VERSION,
                    produce_request({(self.name, partition): records}),
                ),
            )
            result = answer.responses[0].partition_responses[0]
            assert result.error_code == ErrorCode.NONE, result
            self.book.amend((partition, result.base_offset, value))

    async def _delete_records(self, broker: BrokerProcess, state: TopicState) -> None:
        ends = {partition: offset + 1 for partition, offset, _ in state.records}
        if not ends:
            return
        partition = self._random.choice(list(ends))
        offset = self._random.randint(0, ends[partition])
        requested = {"partition_index": partition, "offset": offset}
        request = {"topics": [{"name": self.name, "partitions": [requested]}], "timeout_ms": 30_000}
        starts = [start for index, start in state.starts if index == partition]
        answer = await self.book.take(
            "delete records",
            (partition, max(starts, default=0)),
            broker.ask(ApiKey.DELETE_RECORDS, 1, request),
        )
        result = answer.topics[0].partitions[0]
        assert result.error_code == ErrorCode.NONE, result
        assert result.low_watermark >= offset
        self.book.amend((partition, offset))


class GroupClient:
    """Commits rising offsets for one group without members."""

    def __init__(self, group: str, topic: str, random: Random, events: Callable[[], int]) -> None:
        self.group = group
        self.topic = topic
        self.book = Book(events)
        self._random = random
        self._offset = 0

    async def work(self, broker: BrokerProcess, steps: int) -> None:
        for _ in range(steps):
            await pause(self._random.choice([0, 0, 0.05, 0.7]))
            if self._offset and self._random.random() < 0.06:
                await self._delete(broker)
            else:
                await self._commit(broker)

    async def committed(self, broker: BrokerProcess) -> int:
        request = {
            "group_id": self.group,
            "topics": [{"name": self.topic, "partition_indexes": [0]}],
        }
        if _OFFSETS_TOPIC not in broker.broker.metadata.image.topics:
            return -1
        for _ in range(_MOST_TRIES):
            answer = await broker.ask(ApiKey.OFFSET_FETCH, FETCH_OFFSETS_VERSION, request)
            if answer.error_code not in _NOT_YET:
                assert answer.error_code == ErrorCode.NONE, answer
                return int(answer.topics[0].partitions[0].committed_offset)
            await pause(0.1)
        raise AssertionError(f"group {self.group} is not served: {answer}")

    async def _commit(self, broker: BrokerProcess) -> None:
        self._offset += self._random.randint(1, 5)
        partition = {"partition_index": 0, "committed_offset": self._offset}
        request = {
            "group_id": self.group,
            "generation_id_or_member_epoch": -1,
            "member_id": "",
            "topics": [{"name": self.topic, "partitions": [partition]}],
        }
        await self.book.take(
            "commit", self._offset, self._ask(broker, ApiKey.OFFSET_COMMIT, COMMIT_VERSION, request)
        )

    async def _delete(self, broker: BrokerProcess) -> None:
        await self.book.take(
            "commit",
            -1,
            self._ask(broker, ApiKey.DELETE_GROUPS, 1, {"groups_names": [self.group]}),
        )

    async def _ask(
        self, broker: BrokerProcess, key: ApiKey, version: int, request: dict[str, Any]
    ) -> None:
        for _ in range(_MOST_TRIES):
            answer = await broker.ask(key, version, request)
            if key is ApiKey.DELETE_GROUPS:
                error = answer.results[0].error_code
            else:
                error = answer.topics[0].partitions[0].error_code
            if error in {ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND}:
                return
            assert error in _NOT_YET, answer
            if error != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                # Creates the offsets topic.
                await broker.ask(ApiKey.FIND_COORDINATOR, 1, {"key": self.group, "key_type": 0})
            await pause(0.1)
        raise AssertionError(f"group {self.group} is not served: {answer}")


_NOT_YET = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}


def _uuid(value: Any) -> bytes:
    return value if isinstance(value, bytes) else value.bytes
