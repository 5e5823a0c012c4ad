"""Produce: appends record batches to partitions (hot path; docs/design.md, "One Produce").

v3-12 name topics, v13 gives ids (KIP-516); v7 allows zstd (KIP-110); v8 adds record errors
(KIP-467); v9 is flexible; v10 names the current leader (KIP-951).

acks=0 has no response; an error closes the connection, the only signal for such a producer. acks=1
waits until the records are stored, acks=all until they are committed (delayed_produce.py). A task
is created only for large appends, for a partition with an append in progress, and for hundreds of
partitions. For a repeated partition the last records win, as in Kafka.

Source: Kafka's KafkaApis.handleProduceRequest and ReplicaManager.appendRecords.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING

from wirebroker.api.data.absent_partitions import missing_partition_error
from wirebroker.api.data.delayed_produce import Appended, DelayedProduce
from wirebroker.api.data.prepared_produce import PreparedProduce, prepare
from wirebroker.api.data.produce_checks import (
    check_first_batches,
    check_partition,
    has_duplicate_partitions,
    last_of_each,
    refuse_unknown_codecs,
)
from wirebroker.api.data.produce_results import ProduceResults
from wirebroker.api.data.transaction_guards import Refusal, guards_for
from wirebroker.api.registry import handles_raw
from wirebroker.base.clock import Slices, next_turn
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError, without_frames
from wirebroker.codecs.hot.produce import ProduceTopic, parse_produce
from wirebroker.codecs.hot.produce_response import PartitionResult
from wirebroker.codecs.permissions import WRITE_TOPIC, WRITE_TRANSACTIONAL_ID
from wirebroker.replica.local_replica import LARGE_APPEND_BYTES
from wirebroker.request.handlers import Cost
from wirebroker.storage.log.validation.batch_shape import (
    ZSTD_VERSION,
)
from wirebroker.storage.long_work import TakesLongError

if TYPE_CHECKING:
    from wirebroker.api.broker import Broker
    from wirebroker.api.data.transaction_guards import Guards
    from wirebroker.authorization.access import RequestAccess
    from wirebroker.base.clock import Steps
    from wirebroker.codecs.hot.produce import ProduceRequest
    from wirebroker.replica.partition import Partition
    from wirebroker.request.request import Reply, Request
    from wirebroker.storage.log.append import AppendResult

_TOPIC_ID_VERSION = 13

# More partitions are served in slices: each takes about 10 us.
_MANY_PARTITIONS = 400

# Topics to authorize without slices: a denial takes some 10 us.
DENIED_AT_ONCE = 64

# Longer requests to several partitions are served in slices, too.
_MANY_BYTES = LARGE_APPEND_BYTES

# Frames of this size hold the loop for 15 ms at most, even compressed.
_FEW_BYTES = 4096


class _Produce(ProduceResults):
    """One Produce request and its results so far."""

    __slots__ = (
        "_delayed",
        "_fast_appends",
        "_guards",
        "_is_denied",
        "_must_wait",
        "_now_ms",
    )

    def __init__(
        self,
        broker: Broker,
        request: Request,
        body: ProduceRequest,
        fast_appends: Mapping[int, AppendResult] | None,
    ) -> None:
        super().__init__(broker, request, body)
        # Appends of the fast path, by index (prepared_produce.py).
        self._fast_appends = fast_appends
        # Whether denied topics were removed.
        self._is_denied = False
        # For partitions in which a transaction starts.
        self._guards: Guards = {}
        # Appends that wait for their turn.
        self._delayed: list[tuple[Partition, memoryview, PartitionResult]] = []
        self._now_ms = 0  # set before the first append
        # Whether records must be stored or committed before the response.
        self._must_wait = False

    def serve(self) -> Reply | Awaitable[Reply]:
        """Append what is possible immediately; respond unless something has to wait."""
        body = self._body
        authorization = self._broker.authorization
        access = None if authorization is None else authorization.access_of(self._request)
        try:
            check_first_batches(body, access)
            if self._request.version < ZSTD_VERSION:
                refuse_unknown_codecs(body)
        except KafkaError as error:
            return self._refuse(error)
        if has_duplicate_partitions(body.topics):
            body.topics = last_of_each(body.topics)
        if access is not None:
            topics, body.topics = body.topics, []
            if len(topics) > DENIED_AT_ONCE:
                self._request.keep()
                return self._serve_allowed_later(access, topics)
            self._take_out_denied(access, topics)
        return self._serve_allowed()

    async def _serve_allowed_later(
        self, access: RequestAccess, topics: list[ProduceTopic]
    ) -> Reply:
        slices = Slices(self._broker.clock)
        for first in range(0, len(topics), DENIED_AT_ONCE):
            self._take_out_denied(access, topics[first : first + DENIED_AT_ONCE])
            await slices.turn()
        reply = self._serve_allowed()
        return await reply if isinstance(reply, Awaitable) else reply

    def _serve_allowed(self) -> Reply | Awaitable[Reply]:
        body = self._body
        if body.transactional_id is not None:
            try:
                guards = guards_for(self._broker, self._request, body)
            except KafkaError as error:
                return self._refuse(error)
            if not isinstance(guards, Mapping):
                self._request.keep()
                return self._serve_when_admitted(guards)
            self._guards = guards
        return self._serve()

    def _take_out_denied(self, access: RequestAccess, topics: list[ProduceTopic]) -> None:
        """Add errors for denied topics, and keep the others."""
        by_id = self._request.version >= _TOPIC_ID_VERSION
        names = self._broker.metadata.image.topics_by_id
        allowed = self._body.topics
        for topic in topics:
            topic_image = names.get(topic.topic_id) if by_id else None
            name = topic.name if topic_image is None else topic_image.name
            # The handler refuses unknown ids.
            is_unknown = by_id and topic_image is None
            if is_unknown or access.may(WRITE_TOPIC, name):
                allowed.append(topic)
                continue
            self._is_denied = True
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            answers = [PartitionResult(index, error) for index, _ in topic.partitions]
            self._results.append((topic, answers))

    async def _serve_when_admitted(self, guards: Awaitable[Guards]) -> Reply:
        self._guards = await guards
        reply = self._serve()
        return await reply if isinstance(reply, Awaitable) else reply

    def _serve(self) -> Reply | Awaitable[Reply]:
        topics = self._body.topics
        count = len(topics[0].partitions) if len(topics) == 1 else _count_partitions(topics)
        if count > _MANY_PARTITIONS or (count > 1 and len(self._request.frame) > _MANY_BYTES):
            self._request.keep()
            return self._serve_many()
        if count == 1 == len(topics):  # nearly always; saves a generator
            self._append_one(topics[0])
        elif len(self._request.frame) <= _FEW_BYTES:
            self._append_few(topics)
        else:
            steps = self._append_all()
            slices = Slices(self._broker.clock)
            for _ in steps:
                if slices.is_over:  # decompression took longer than expected
                    self._request.keep()
                    return self._serve_rest(slices, steps)
        if self._delayed:
            # Copy small batches of waiting appends out of the shared memory.
            copied = self._request.kept
            self._delayed = [
                (partition, copied(records), done) for partition, records, done in self._delayed
            ]
            return self._finish()
        return self._reply_when_committed() if self._must_wait else self._reply()

    async def _serve_many(self) -> Reply:
        await next_turn()  # parsing and authorization took a while
        return await self._serve_rest(Slices(self._broker.clock), self._append_all())

    async def _serve_rest(self, slices: Slices, steps: Steps[None]) -> Reply:
        await slices.run(steps)
        return await self._finish()

    def _append_all(self) -> Steps[None]:
        for topic in self._body.topics:
            if not topic.partitions:
                continue
            answers, partitions, missing = self._begin(topic)
            for index, records in topic.partitions:
                # small requests read the clock once per topic
                self._now_ms = self._broker.clock.now_ms()
                answers.append(self._append(topic, partitions.get(index), index, records, missing))
                yield

    def _append_few(self, topics: list[ProduceTopic]) -> None:
        """The same as `_append_all` without a generator, for small requests."""
        for topic in topics:
            if topic.partitions:
                answers, partitions, missing = self._begin(topic)
                for index, records in topic.partitions:
                    answers.append(
                        self._append(topic, partitions.get(index), index, records, missing)
                    )

    def prepare_next(self) -> None:
        """Enable the fast path if this request and the one before go to the same topic."""
        session = self._request.session
        last, session.prepared = session.prepared, None
        partitions = self._plain_partitions()
        topic_id = partitions[0].topic_id if partitions else b""
        if partitions and topic_id == session.last_produced:
            session.prepared = prepare(self._broker, self._request, self._body, partitions, last)
        session.last_produced = topic_id

    def _plain_partitions(self) -> list[Partition]:
        """Return the partitions if the fast path supports the request, else nothing."""
        body = self._body
        appended = self._appended
        authorization = self._broker.authorization
        if (
            self._is_denied
            # The fast path bypasses the authorizer, so its decisions must be cacheable.
            or not (authorization is None or authorization.keeps_decisions)
            or body.acks == 0
            or body.transactional_id is not None
            or len(body.topics) != 1
            or len(body.topics[0].partitions) != len(appended)
        ):
            return []
        return [partition for partition, _, _, _ in appended]

    def _append_one(self, topic: ProduceTopic) -> None:
        answers, partitions, missing = self._begin(topic)
        index, records = topic.partitions[0]
        answers.append(self._append(topic, partitions.get(index), index, records, missing))

    def _begin(
        self, topic: ProduceTopic
    ) -> tuple[list[PartitionResult], Mapping[int, Partition], ErrorCode]:
        answers: list[PartitionResult] = []
        self._results.append((topic, answers))
        self._now_ms = self._broker.clock.now_ms()
        by_id = self._request.version >= _TOPIC_ID_VERSION
        partitions, missing = self._broker.replicas.find(topic.name, topic.topic_id, by_id=by_id)
        return answers, partitions, missing

    def _append(
        self,
        topic: ProduceTopic,
        partition: Partition | None,
        index: int,
        records: memoryview | None,
        missing: ErrorCode,
    ) -> PartitionResult:
        result = PartitionResult(index)
        if partition is None:
            by_id = self._request.version >= _TOPIC_ID_VERSION
            broker = self._broker
            result.error_code = (
                missing_partition_error(broker, missing, index, topic_id=topic.topic_id)
                if by_id
                else missing_partition_error(broker, missing, index, name=topic.name)
            )
            return result
        if self._fast_appends is not None:
            fast_append = self._fast_appends.get(index)
            if fast_append is not None:
                self._note_done(result, fast_append, partition)
                return result
        guards = self._guards
        guard = guards.get((partition.topic, index)) if guards else None
        try:
            checked = check_partition(partition, records, self._request, self._body, guard)
            if isinstance(guard, Refusal):
                result.error_code, result.error_message = guard
                self._name_leader(result, partition)
                return result
            if partition.is_appending or partition.takes_long(checked):
                self._delayed.append((partition, checked, result))
                return result
            version = self._request.version
            done = partition.append(
                checked, now_ms=self._now_ms, request_version=version, guard=guard
            )
        except TakesLongError:
            assert records is not None, "a batch to unpack has records"
            self._delayed.append((partition, records, result))
        except KafkaError as error:
            self._note_error(result, error, partition)
        except OSError as fault:
            self._note_disk_error(result, fault, partition)
        else:
            self._note_done(result, done, partition)
        return result

    async def _finish(self) -> Reply:
        """Run the waiting appends, wait for the records, and respond."""
        if self._delayed:
            await next_turn()  # detecting long appends took a while
        slices = Slices(self._broker.clock)
        for partition, records, result in self._delayed:
            await slices.turn()
            now_ms = self._broker.clock.now_ms()
            version = self._request.version
            guard = self._guards.get((partition.topic, partition.index))
            assert not isinstance(guard, Refusal), "refused batches are not delayed"
            try:
                done = await partition.append_in_turn(
                    records, now_ms=now_ms, request_version=version, slices=slices, guard=guard
                )
            except KafkaError as error:
                self._note_error(result, error, partition)
            except OSError as fault:
                self._note_disk_error(result, fault, partition)
            else:
                self._note_done(result, done, partition)
        if self._must_wait:
            return await self._reply_when_committed()
        self._withdraw_lost()
        return self._reply()

    def _reply_when_committed(self) -> asyncio.Future[Reply]:
        reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

        def answer() -> None:
            if reply.done():  # the client has disconnected
                return
            try:
                self._withdraw_lost()
                for partition, result, _, _ in self._appended:
                    self._name_leader(result, partition)  # it may have moved
                reply.set_result(self._reply())
            except Exception as error:  # noqa: BLE001 - the connection logs it and closes
                reply.set_exception(without_frames(error))

        appended = [Appended(*fields) for fields in self._appended]
        delayed = DelayedProduce(
            appended,
            acks=self._body.acks,
            timeout_ms=self._body.timeout_ms,
            on_done=answer,
        )
        self._request.session.when_ended(delayed.give_up_soon)
        return reply

    def _note_done(self, result: PartitionResult, done: AppendResult, partition: Partition) -> None:
        result.base_offset = done.base_offset
        result.log_append_time_ms = done.log_append_time_ms
        result.log_start_offset = done.log_start_offset
        end_offset = done.last_offset + 1
        acks = self._body.acks
        is_acknowledged = acks == 0 or partition.acknowledged_offset(acks) >= end_offset
        self._appended.append((partition, result, end_offset, is_acknowledged))
        if not is_acknowledged:
            self._must_wait = True


@handles_raw(ApiKey.PRODUCE, permissions=(WRITE_TOPIC, WRITE_TRANSACTIONAL_ID), cost=Cost.SLICES)
def produce(broker: Broker, request: Request) -> Reply | Awaitable[Reply]:
    """Append the request's records; return a result per partition."""
    body = parse_produce(request.frame, request.position, request.version)
    prepared = request.session.prepared
    fast_appends = prepared.take_appended() if isinstance(prepared, PreparedProduce) else None
    produced = _Produce(broker, request, body, fast_appends)
    reply = produced.serve()
    produced.prepare_next()
    return reply


def _count_partitions(topics: list[ProduceTopic]) -> int:
    return sum(len(topic.partitions) for topic in topics)
