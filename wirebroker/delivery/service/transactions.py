"""Planned transactions, carried out by a transactional producer.

Source: KIP-98, and KIP-447 for the fencing by the consumer group's generation.
"""

from __future__ import annotations

import logging
from functools import partial
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition

from wirebroker.delivery.pending.refusals import FINAL_ERRORS
from wirebroker.delivery.service.errors import FencedError, StoppingError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from threading import Event

    from wirebroker.base.clock import Clock
    from wirebroker.delivery.model.records import OutputRecord
    from wirebroker.delivery.pending.plan import TransactionPlan
    from wirebroker.delivery.service.settings import ServiceSettings

logger = logging.getLogger(__name__)

_INIT_S: Final = 60.0
# Between looks at the request to stop while a producer starts.
_INIT_SLICE_S: Final = 1.0
_FIRST_FLUSH_S: Final = 1.0
_MESSAGE_BYTES: Final = 64 << 20
# As Java's producer: a batch must fit into topics with a small max.message.bytes.
_BATCH_BYTES: Final = 16 << 10
# A connection that a broker or a proxy has dropped is not used again, for a request that would
# then wait (librdkafka issue 5456).
_IDLE_MS: Final = 10_000
# Between looks at the delivery reports.
_FLUSH_S: Final = 0.1
# The broker refuses a whole batch.
_SIZE: Final = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE})
# Not errors of a record: an abort discards it.
_DISCARDED: Final = frozenset({KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT})
# Topics in the log after an abort.
_MOST_LOGGED: Final = 5
# Errors of a record in the pending topic; other errors are those of the topic.
_FINAL_IN_PENDING: Final = _SIZE | {KafkaError.INVALID_RECORD}
# Further ones, of librdkafka itself.
_FINAL: Final = FINAL_ERRORS | {
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
    # A topic name that librdkafka does not accept.
    KafkaError._INVALID_ARG,
}
# Errors of all records for a topic.
_OF_TOPIC: Final = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC})


class _Failure(NamedTuple):
    """A record that was not written; `cause` is that of OutputRecord."""

    cause: str
    topic: str
    error: KafkaError

    @property
    def reason(self) -> str:
        """The text of the error, which names the right that the service lacks."""
        if self.error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            return f"the service has no right to write to topic {self.topic}"
        return self.error.str()


class TransactionOutcome(NamedTuple):
    """How a transaction ended.

    Attributes:
        is_committed: Whether it took effect.
        refusals: If not, the reasons for which the broker refused records for good, by their
            causes. There are none if another attempt may succeed, or a careful one would tell.
        unwritable: Topics of which records were not written for another reason.
    """

    is_committed: bool
    refusals: Mapping[str, str] = MappingProxyType({})
    unwritable: frozenset[str] = frozenset()


class Transactions:
    """One producer; one transaction at a time."""

    def __init__(
        self,
        settings: ServiceSettings,
        name: str,
        clock: Clock,
        suspects: set[str],
        stopping: Event,
    ) -> None:
        """Connect, fence an earlier producer with this name, and abort its transaction.

        `suspects` are shared by producers that carry out the same transaction one after the other:
        causes of records in batches that were too large. They are sent alone.

        Raises:
            KafkaException: The cluster refuses it.
            StoppingError: `stopping` is set.
        """
        if stopping.is_set():
            raise StoppingError
        self._pending_topic = settings.rules.pending_topic
        self._clock = clock
        self._failures: list[_Failure] = []
        self._suspects = suspects
        # Then the cluster has aborted it.
        self._timeout_s = settings.transaction_timeout_ms / 1000
        self._is_careful = False
        self._producer = Producer(
            {
                "log_level": 4,
                "connections.max.idle.ms": _IDLE_MS,
                **settings.kafka,
                "transactional.id": f"{settings.rules.group}-{name}",
                "transaction.timeout.ms": settings.transaction_timeout_ms,
                "message.timeout.ms": settings.transaction_timeout_ms,
                "message.max.bytes": _MESSAGE_BYTES,
                "batch.size": _BATCH_BYTES,
                "linger.ms": 1,
                "partitioner": "murmur2_random",
                "delivery.report.only.error": True,
                "topic.metadata.propagation.max.ms": 2_000,
            }
        )
        self._start(stopping)

    def _start(self, stopping: Event) -> None:
        def request(limit_s: float) -> None:
            if stopping.is_set():
                raise StoppingError
            # After a timeout, the next call goes on with the same request.
            self._producer.init_transactions(min(limit_s, _INIT_SLICE_S))

        self._call(request, self._clock.monotonic() + _INIT_S)

    def begin(self, plan: TransactionPlan, *, is_careful: bool) -> None:
        """Begin a transaction and enqueue its records; `complete` follows.

        A careful one takes longer, and finds out which records are refused.

        Raises:
            FencedError: This producer cannot go on.
            KafkaException: A record cannot be enqueued.
        """
        self._failures.clear()
        self._is_careful = is_careful
        try:
            self._producer.begin_transaction()
        except KafkaException as error:
            raise FencedError(error.args[0].str()) from error
        for record in plan.records(self._pending_topic):
            is_suspect = record.cause in self._suspects
            if is_suspect:
                self._flush()
            if not self._produce_one(record):
                break
            if is_suspect:
                self._flush()
            if self._failures:
                self._fail_likewise(plan)
                break

    def complete(self, plan: TransactionPlan, group: Any) -> TransactionOutcome:
        """Complete the transaction that was begun: commit it, or abort it if something failed.

        Raises:
            FencedError: This producer cannot go on.
            KafkaException: A request failed for another reason than the transaction.
        """
        try:
            if self._is_careful:
                self._flush()
            else:
                # Offsets that are sent while a broker fails can hang. A refused record is not
                # known here, and the others then wait for their timeout.
                self._producer.flush(_FIRST_FLUSH_S)
            if self._failures:
                return self._abort()
            offsets = self._offsets(plan)
            ends_by = self._ends_by()
            self._call(partial(self._producer.send_offsets_to_transaction, offsets, group), ends_by)
            # It waits for the records as well.
            self._call(self._producer.commit_transaction, ends_by)
        except KafkaException as error:
            return self._after(error)
        if self._suspects:
            self._suspects.difference_update(output.cause for output in plan.outputs)
        return TransactionOutcome(is_committed=True)

    def _fail_likewise(self, plan: TransactionPlan) -> None:
        """Add the failures of the other records for a missing topic: each would cost an abort."""
        cause, topic, error = self._failures[-1]
        if error.code() in _OF_TOPIC:
            self._failures += [
                _Failure(output.cause, topic, error)
                for output in plan.outputs
                if output.topic == topic and output.cause != cause
            ]

    def close(self) -> None:
        """Disconnect."""
        try:
            self._producer.flush(0)
        except KafkaException as error:
            if not error.args[0].fatal():
                raise

    def _flush(self) -> None:
        """Wait until all records are written or one has failed.

        After a failure librdkafka keeps the remaining records until their timeout.
        """
        while self._producer.flush(_FLUSH_S) and not self._failures:
            pass

    def _produce_one(self, record: OutputRecord) -> bool:
        """Enqueue a record; return whether the transaction accepts more of them."""
        topic, partition, key, value, headers, cause = record
        arguments: dict[str, Any] = {} if partition is None else {"partition": partition}
        if self._is_careful:
            # Each report needs Python's lock, for which the instance's thread then waits.
            arguments["on_delivery"] = partial(self._note_failure, cause, topic)
        if headers:
            arguments["headers"] = list(headers)
        while True:
            try:
                self._producer.produce(topic, value, key, **arguments)
            except BufferError:
                self._producer.poll(0.1)
            except KafkaException as error:
                code = error.args[0].code()
                if code == KafkaError._STATE:
                    # An earlier record was refused; its delivery report has the reason.
                    return False
                if code not in _FINAL:
                    raise
                self._failures.append(_Failure(cause, topic, error.args[0]))
                return True
            else:
                return True

    def _note_failure(
        self, cause: str, topic: str, error: KafkaError | None, _message: Any
    ) -> None:
        if error is not None:
            self._failures.append(_Failure(cause, topic, error))

    def _offsets(self, plan: TransactionPlan) -> list[TopicPartition]:
        """Return the positions to commit; all of them fence former owners."""
        return [
            *(TopicPartition(*place, offset) for place, offset in plan.input_offsets.items()),
            *(
                TopicPartition(self._pending_topic, number, offset)
                for number, offset in plan.pending_partitions.items()
            ),
        ]

    def _after(self, error: KafkaException) -> TransactionOutcome:
        problem: KafkaError = error.args[0]
        if problem.fatal() or not problem.txn_requires_abort():
            raise FencedError(problem.str()) from error
        logger.warning("a transaction is aborted: %s", problem.str())
        return self._abort()

    def _abort(self) -> TransactionOutcome:
        try:
            self._call(self._producer.abort_transaction, self._ends_by())
        except KafkaException as error:
            raise FencedError(error.args[0].str()) from error
        return TransactionOutcome(
            is_committed=False, refusals=self._refusals(), unwritable=self._unwritable()
        )

    def _unwritable(self) -> frozenset[str]:
        """Return the topics that could not be written, perhaps for some time only; log them."""
        reasons = {
            failure.topic: failure.error
            for failure in self._failures
            if failure.error.code() not in _FINAL | _DISCARDED
        }
        for topic, error in islice(reasons.items(), _MOST_LOGGED):
            logger.warning("topic %s cannot be written: %s", topic, error.str())
        return frozenset(reasons)

    def _refusals(self) -> dict[str, str]:
        """Return the reasons against records, by their causes.

        Raises:
            FencedError: The pending topic cannot be written.
        """
        final = [failure for failure in self._failures if failure.error.code() in _FINAL]
        for _, topic, error in final:
            if topic == self._pending_topic and error.code() not in _FINAL_IN_PENDING:
                raise FencedError(f"topic {topic} cannot be written: {error.str()}")
        too_large = {failure.cause for failure in final if failure.error.code() in _SIZE}
        unclear = too_large - self._suspects if len(too_large) > 1 else set[str]()
        self._suspects |= unclear
        return {failure.cause: failure.reason for failure in final if failure.cause not in unclear}

    def _ends_by(self) -> float:
        """Return when the transaction has timed out, in seconds of the monotonic clock."""
        return self._clock.monotonic() + self._timeout_s

    def _call(self, request: Callable[[float], object], ends_by: float) -> None:
        """Repeat a request while the error is retriable; commits may have begun already."""
        while True:
            try:
                request(max(ends_by - self._clock.monotonic(), _FLUSH_S))
            except KafkaException as error:
                if not error.args[0].retriable() or self._clock.monotonic() > ends_by:
                    raise
            else:
                return
