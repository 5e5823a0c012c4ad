"""Runs one shard over its partition: append, replay, answer when committed; and its timers.

    run(operation) --> Outcome --> append --> replay --> answers and effects, once the high
                                     |                   watermark is there
                                     '-- failed --> on_failure, every other waiter gets an error

Nothing here awaits: one outcome is carried through in one go, so no request sees another's
half-done work. Answers of outcomes without records wait for what was appended before them, so that
nobody is shown what may still be lost. An answer is given up after a while, an effect never.

Records of an outcome with a producer belong to his transaction: they are appended as such, and a
marker (`end_transaction`) decides them.

Source: Kafka's CoordinatorRuntime; CoordinatorOperationExceptionHelper for the error codes.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from wirebroker.codecs.compression import Codec
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.record_batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, build_batch
from wirebroker.coordinator.runtime import Answer, Marker, Moment, Outcome, ProducerEpoch
from wirebroker.storage.log_append import AppendOrigin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from wirebroker.clock import Clock
    from wirebroker.cluster.partition import Partition
    from wirebroker.codecs.coordinator_records import CoordinatorRecord
    from wirebroker.coordinator.runtime import Timers
    from wirebroker.storage.verification import VerificationGuard

    Response = Mapping[str, Any]

logger = logging.getLogger(__name__)

# How long timers that are due may hold the loop before others have a turn.
_TIMER_SLICE_S = 0.005
# What a record costs beside key and value, at most, and a batch beside its records.
_RECORD_OVERHEAD_BYTES = 32
_BATCH_OVERHEAD_BYTES = 128
_NO_PRODUCER = (NO_PRODUCER_ID, NO_PRODUCER_EPOCH)

_APPEND_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


class Shard(Protocol):
    """What a coordinator's state can do (coordinator/runtime.py)."""

    @property
    def timers(self) -> Timers:
        """Its timers."""
        ...

    def replay(self, key: bytes, value: bytes | None, producer_id: int = ..., /) -> None:
        """Take over a record that is in the log, decided or of a producer's open transaction."""
        ...

    def replay_end(self, producer_id: int, is_commit: bool, /) -> None:
        """Take over a marker: what the producer's open transaction holds counts, or never did."""
        ...

    def on_timer(self, event: Any, moment: Moment) -> Outcome:
        """Handle an event of a timer."""
        ...

    def on_unloaded(self) -> Outcome:
        """Answer all who wait."""
        ...


class Waiter:
    """Somebody who waits for a response; the token that shards are given.

    If the response is there when the request was carried out, no future is made.
    """

    __slots__ = ("_finish", "_future", "_on_error", "_response")

    def __init__(
        self,
        on_error: Callable[[ErrorCode], Response],
        finish: Callable[[dict[str, Any]], Response] | None = None,
    ) -> None:
        self._on_error = on_error
        # Makes a response of what the shard answers.
        self._finish = finish
        self._response: Response | None = None
        self._future: asyncio.Future[Response] | None = None

    def resolve(self, response: dict[str, Any]) -> None:
        """Give the response; only the first one counts."""
        self._give(response if self._finish is None else self._finish(response))

    def fail(self, error: ErrorCode) -> None:
        """Give the response that says what went wrong."""
        self._give(self._on_error(error))

    def result(self) -> Response | asyncio.Future[Response]:
        """Return the response, or a future of it."""
        if self._response is not None:
            return self._response
        if self._future is None:
            self._future = asyncio.get_running_loop().create_future()
        return self._future

    def _give(self, response: Response) -> None:
        if self._future is not None:
            # The connection may have gone meanwhile.
            if not self._future.done():
                self._future.set_result(response)
        elif self._response is None:
            self._response = response


class _Deferred(NamedTuple):
    """Answers that wait for the high watermark."""

    end_offset: int
    # None: it was given up; only the effects are left.
    give_up_at: float | None
    answers: Sequence[Answer]
    effects: Sequence[Any]


class CoordinatorPartition:
    """A partition of an internal topic with the state that its records give."""

    __slots__ = (
        "_armed",
        "_armed_ms",
        "_base_sequence",
        "_clock",
        "_codec",
        "_commit_timeout_s",
        "_deferred",
        "_end_offset",
        "_is_closed",
        "_on_disk_failure",
        "_on_effect",
        "_timeout",
        "partition",
        "shard",
    )

    def __init__(
        self,
        partition: Partition,
        shard: Shard,
        clock: Clock,
        *,
        codec: Codec = Codec.NONE,
        base_sequence: int = 0,
        commit_timeout_ms: int = 5_000,
        on_disk_failure: Callable[[CoordinatorPartition, OSError], None],
        on_effect: Callable[[CoordinatorPartition, Any], None] | None = None,
    ) -> None:
        self.partition = partition
        self.shard = shard
        self._clock = clock
        self._codec = codec
        self._base_sequence = base_sequence  # of each batch, with and without a producer
        self._on_disk_failure = on_disk_failure
        self._on_effect = on_effect
        self._commit_timeout_s = commit_timeout_ms / 1000
        # Answers that wait until the high watermark has reached an offset, in order.
        self._deferred: deque[_Deferred] = deque()
        self._timeout: asyncio.TimerHandle | None = None
        self._end_offset = partition.log.log_end_offset
        self._armed: asyncio.TimerHandle | None = None
        self._armed_ms = 0
        self._is_closed = False

    def now(self) -> Moment:
        """Return what time it is."""
        return Moment(self._clock.now_ms(), int(self._clock.monotonic() * 1000))

    def run(
        self, operation: Callable[[Moment], Outcome], *, guard: VerificationGuard | None = None
    ) -> None:
        """Carry out an operation of the shard.

        Args:
            operation: Gives the outcome.
            guard: If the records may begin a producer's transaction here.

        Raises:
            KafkaError: What the operation raised; then it has changed nothing.
        """
        moment = self.now()
        self.carry_out(operation(moment), moment, guard=guard)
        self._arm(moment.monotonic_ms)

    def carry_out(
        self, outcome: Outcome, moment: Moment, *, guard: VerificationGuard | None = None
    ) -> None:
        """Append, replay and answer."""
        try:
            for batch in self._batches(outcome):
                self._append(batch, outcome.producer, moment, guard)
        except KafkaError as error:
            self._fail(outcome, error.code, moment)
        except OSError as error:
            self._fail(outcome, ErrorCode.KAFKA_STORAGE_ERROR, moment)
            self._on_disk_failure(self, error)
        else:
            self._answer_when_committed(outcome)

    def end_transaction(self, marker: Marker) -> int:
        """Append the end of a producer's transaction and replay it; return the log's end behind it.

        Raises:
            KafkaError: What the partition raises; REQUEST_TIMED_OUT: a thread is at work on it.
            OSError: The disk failed; the partition is served no more.
        """
        try:
            result = self._partition_free().append_marker(
                **marker._asdict(), now_ms=self._clock.now_ms()
            )
        except OSError as error:
            self._on_disk_failure(self, error)
            raise
        self._end_offset = result.last_offset + 1
        self.shard.replay_end(marker.producer_id, marker.is_commit)
        return self._end_offset

    @property
    def is_closed(self) -> bool:
        """Whether the partition was given up."""
        return self._is_closed

    def close(self) -> None:
        """Give the partition up: whoever waits is told to look for another coordinator."""
        self._is_closed = True
        if self._armed is not None:
            self._armed.cancel()
        self.partition.unwatch(self._release)
        for answer in self.shard.on_unloaded().answers:
            answer.token.resolve(answer.response)
        for deferred in self._deferred:
            _fail_all(deferred.answers, ErrorCode.NOT_COORDINATOR)
        self._deferred.clear()
        if self._timeout is not None:
            self._timeout.cancel()

    # -- appending ---------------------------------------------------------------------------

    def _batches(self, outcome: Outcome) -> Iterator[Sequence[CoordinatorRecord]]:
        records = outcome.records
        if not records:
            return
        if outcome.is_atomic:
            yield records
            return
        limit = self.partition.log.settings.max_message_bytes - _BATCH_OVERHEAD_BYTES
        batch: list[CoordinatorRecord] = []
        size = 0
        for record in records:
            record_size = _RECORD_OVERHEAD_BYTES + len(record.key) + len(record.value or b"")
            if batch and size + record_size > limit:
                yield batch
                batch, size = [], 0
            batch.append(record)
            size += record_size
        yield batch

    def _append(
        self,
        records: Sequence[CoordinatorRecord],
        producer: ProducerEpoch | None,
        moment: Moment,
        guard: VerificationGuard | None,
    ) -> None:
        """Append one batch, and make it the shard's state."""
        partition = self._partition_free()
        producer_id, producer_epoch = producer or _NO_PRODUCER
        batch = build_batch(
            [(key, value, ()) for key, value in records],
            timestamp_ms=moment.wall_ms,
            codec=self._codec,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=self._base_sequence,
            is_transactional=producer is not None,
        )
        result = partition.append(
            memoryview(batch),
            now_ms=moment.wall_ms,
            request_version=13,
            origin=AppendOrigin.CLIENT if producer is None else AppendOrigin.COORDINATOR,
            guard=guard,
        )
        self._end_offset = result.last_offset + 1
        for key, value in records:
            self.shard.replay(key, value, producer_id)

    def _partition_free(self) -> Partition:
        """Return the partition, if it can be appended to at once."""
        partition = self.partition
        partition.check_leader()
        if partition.is_appending:
            # Somebody appends a lot to the internal topic by hand.
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)
        return partition

    def _fail(self, outcome: Outcome, error: ErrorCode, moment: Moment) -> None:
        error = _APPEND_ERRORS.get(error, error)
        logger.warning(
            "records could not be appended to %s-%d: %s",
            self.partition.topic,
            self.partition.index,
            error.name,
        )
        if outcome.on_failure is not None:
            self.carry_out(outcome.on_failure(error, moment), moment)
        _fail_all(outcome.answers, error)

    # -- answering ---------------------------------------------------------------------------

    def _answer_when_committed(self, outcome: Outcome) -> None:
        answers, effects = outcome.answers, outcome.effects
        if not answers and not effects:
            return
        if not self._deferred:
            if self.partition.log.high_watermark >= self._end_offset:
                self._let_go(answers, effects)
                return
            self.partition.watch(self._release)
        give_up_at = self._clock.monotonic() + self._commit_timeout_s
        self._deferred.append(_Deferred(self._end_offset, give_up_at, answers, effects))
        if self._timeout is None:
            loop = asyncio.get_running_loop()
            self._timeout = loop.call_later(self._commit_timeout_s, self._on_timeout)

    def _let_go(self, answers: Sequence[Answer], effects: Sequence[Any]) -> None:
        for token, response in answers:
            token.resolve(response)
        for effect in effects:
            assert self._on_effect is not None, "a shard with effects has somebody for them"
            self._on_effect(self, effect)

    def _release(self) -> None:
        """Let the answers and effects go whose records are committed."""
        high_watermark = self.partition.log.high_watermark
        if not self.partition.directory.is_online:
            # A sync has failed: what waits will never be committed here.
            for deferred in self._deferred:
                _fail_all(deferred.answers, ErrorCode.NOT_COORDINATOR)
            self._deferred.clear()
        while self._deferred and self._deferred[0].end_offset <= high_watermark:
            deferred = self._deferred.popleft()
            # Effects may bring about more records.
            self._let_go(deferred.answers, deferred.effects)
        if not self._deferred:
            self.partition.unwatch(self._release)

    def _on_timeout(self) -> None:
        """Give up answers that have waited too long: perhaps the records are committed later."""
        self._timeout = None
        now = self._clock.monotonic()
        waiting: deque[_Deferred] = deque()
        next_at: float | None = None
        for deferred in self._deferred:
            give_up_at = deferred.give_up_at
            if give_up_at is None:
                waiting.append(deferred)
            elif give_up_at > now:
                waiting.append(deferred)
                next_at = min(next_at or give_up_at, give_up_at)
            else:
                _fail_all(deferred.answers, ErrorCode.COORDINATOR_NOT_AVAILABLE)
                if deferred.effects:
                    waiting.append(deferred._replace(give_up_at=None, answers=()))
        self._deferred = waiting
        if next_at is not None:
            delay_s = next_at - now
            self._timeout = asyncio.get_running_loop().call_later(delay_s, self._on_timeout)
        if not waiting:
            self.partition.unwatch(self._release)

    # -- timers ------------------------------------------------------------------------------

    def arm(self) -> None:
        """Look at the timers when the next one is due."""
        self._arm(self.now().monotonic_ms)

    def _arm(self, now_ms: int) -> None:
        next_ms = self.shard.timers.next_ms()
        if next_ms is None or self._is_closed:
            return
        if self._armed is not None:
            if self._armed_ms <= next_ms:
                return
            self._armed.cancel()
        self._armed_ms = next_ms
        delay_s = max(0, next_ms - now_ms) / 1000
        self._armed = asyncio.get_running_loop().call_later(delay_s, self._on_time)

    def _on_time(self) -> None:
        self._armed = None
        give_up_at = self._clock.monotonic() + _TIMER_SLICE_S
        while not self._is_closed:
            moment = self.now()
            event = self.shard.timers.take_due(moment.monotonic_ms)
            if event is None:
                break
            self.carry_out(self.shard.on_timer(event, moment), moment)
            if self._clock.monotonic() >= give_up_at:
                break
        self.arm()


def _fail_all(answers: Iterable[Answer], error: ErrorCode) -> None:
    for answer in answers:
        answer.token.fail(error)
