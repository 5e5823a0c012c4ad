"""Produce: append record batches to partitions (hot path; see DESIGN "One Produce").

v3-12 name topics, v13 gives ids (KIP-516); v7 allows zstd (KIP-110); v8 adds record errors
(KIP-467); v9 is flexible; v10 names the current leader (KIP-951).

acks 0 gets no answer, and a fault closes the connection, which is all that such a producer can
notice. With one replica acks 1 and -1 are the same: the record is committed once it is written, or
on the disk where that is asked for (delayed_produce.py). No task is made unless a partition's
append is large, another one is under way there, or the request names hundreds of partitions.

A partition that is named twice takes its last records only, as Kafka's map of them does.

Source: Kafka's KafkaApis.handleProduceRequest and ReplicaManager.appendRecords.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING

from wirebroker.api.delayed_produce import Appended, DelayedProduce, withdraw
from wirebroker.api.produce_admission import Refusal, admit
from wirebroker.api.registry import CloseConnectionError, handles_raw
from wirebroker.api.repeated_produce import remember
from wirebroker.clock import Slices, finish
from wirebroker.cluster.partition import LARGE_APPEND_BYTES
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.produce import ProduceTopic, parse_produce
from wirebroker.codecs.produce_response import PartitionResult, encode_produce
from wirebroker.codecs.record_batch import HEADER_BYTES, TRANSACTIONAL_FLAG
from wirebroker.coordinator.topic_names import is_internal
from wirebroker.storage.batch_validation import RefusedBatchError

if TYPE_CHECKING:
    from wirebroker.api.produce_admission import Admission
    from wirebroker.api.registry import Reply, Request
    from wirebroker.broker import Broker
    from wirebroker.clock import Steps
    from wirebroker.cluster.partition import Partition
    from wirebroker.codecs.produce import ProducePartition, ProduceRequest
    from wirebroker.storage.log_append import AppendResult

_TOPIC_ID_VERSION = 13

# Of a batch header, for a check that needs no parsing.
_ATTRIBUTES_POSITION = 22

# The only client that may append to internal topics (Kafka's AdminUtils.ADMIN_CLIENT_ID).
_ADMIN_CLIENT_ID = "__admin_client"

# Faults whose answer does not tell the log start offset (Kafka's ReplicaManager.appendToLocalLog).
_SILENT = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.INVALID_REQUIRED_ACKS,
    }
)

# More partitions than this are served in slices: each takes about 10 us.
_MANY_PARTITIONS = 400

# And so are several partitions that together would hold the loop as one large append does.
_MANY_BYTES = LARGE_APPEND_BYTES


class _Produce:
    """One Produce request: what is asked, and the answer as it grows."""

    __slots__ = (
        "_admission",
        "_appended",
        "_broker",
        "_delayed",
        "_must_wait",
        "_request",
        "_results",
        "_wanted",
    )

    def __init__(self, broker: Broker, request: Request, wanted: ProduceRequest) -> None:
        self._broker = broker
        self._request = request
        self._wanted = wanted
        # Of partitions in which a transaction begins.
        self._admission: Admission = {}
        self._results: list[tuple[ProduceTopic, list[PartitionResult]]] = []
        # Appends that have to wait for their turn.
        self._delayed: list[tuple[Partition, memoryview, PartitionResult]] = []
        # What Appended is made of when one has to wait.
        self._appended: list[tuple[Partition, PartitionResult, int]] = []
        # Whether something was not committed as soon as it was appended.
        self._must_wait = False

    def serve(self) -> Reply | Awaitable[Reply]:
        """Append at once whatever can be, and answer unless something has to wait."""
        wanted = self._wanted
        if _names_one_twice(wanted.topics):
            wanted.topics = _last_of_each(wanted.topics)
        if wanted.transactional_id is None and _has_transactional_records(wanted):
            return self._refuse(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        if wanted.transactional_id is not None:
            try:
                admission = admit(self._broker, self._request, wanted)
            except KafkaError as error:
                return self._refuse(error.code)
            if not isinstance(admission, Mapping):
                self._request.keep()
                return self._serve_when_admitted(admission)
            self._admission = admission
        return self._serve()

    async def _serve_when_admitted(self, admission: Awaitable[Admission]) -> Reply:
        self._admission = await admission
        reply = self._serve()
        return await reply if isinstance(reply, Awaitable) else reply

    def _serve(self) -> Reply | Awaitable[Reply]:
        topics = self._wanted.topics
        count = len(topics[0].partitions) if len(topics) == 1 else _count_partitions(topics)
        if count > _MANY_PARTITIONS or (count > 1 and len(self._request.frame) > _MANY_BYTES):
            self._request.keep()
            return self._serve_many()
        if count == 1 == len(topics):  # nearly always, and spares a generator
            self._append_one(topics[0])
        else:
            finish(self._append_all())
        if self._delayed:
            # Small batches behind a large append are copied out of the shared memory.
            kept = self._request.kept
            self._delayed = [(each, kept(records), done) for each, records, done in self._delayed]
            return self._finish()
        return self._reply_when_committed() if self._must_wait else self._reply()

    def _refuse(self, code: ErrorCode) -> Reply:
        """Give every partition the same error."""
        self._results = [
            (topic, [PartitionResult(index, code) for index, _ in topic.partitions])
            for topic in self._wanted.topics
        ]
        return self._reply()

    async def _serve_many(self) -> Reply:
        await Slices(self._broker.clock).run(self._append_all())
        return await self._finish()

    def _append_all(self) -> Steps[None]:
        for topic in self._wanted.topics:
            if not topic.partitions:
                continue
            answers, partitions, missing = self._begin(topic)
            for index, records in topic.partitions:
                answers.append(self._append(partitions.get(index), index, records, missing))
                yield

    def note_repetition(self) -> None:
        """Let the next request go the short way if it will be like this one and the one before."""
        connection = self._request.connection
        connection.repeated = None
        partition = self._only_partition()
        if partition is not None and partition is connection.last_produced:
            connection.repeated = remember(self._broker, self._request, self._wanted, partition)
        connection.last_produced = partition

    def _only_partition(self) -> Partition | None:
        """Return the partition to which all went, at once and without a transaction."""
        wanted = self._wanted
        if (
            len(self._appended) != 1
            or self._must_wait
            or wanted.acks == 0
            or wanted.transactional_id is not None
            or len(wanted.topics) != 1
            or len(wanted.topics[0].partitions) != 1
        ):
            return None
        return self._appended[0][0]

    def _append_one(self, topic: ProduceTopic) -> None:
        answers, partitions, missing = self._begin(topic)
        index, records = topic.partitions[0]
        answers.append(self._append(partitions.get(index), index, records, missing))

    def _begin(
        self, topic: ProduceTopic
    ) -> tuple[list[PartitionResult], Mapping[int, Partition], ErrorCode]:
        answers: list[PartitionResult] = []
        self._results.append((topic, answers))
        by_id = self._request.version >= _TOPIC_ID_VERSION
        partitions, missing = self._broker.replicas.find(topic.name, topic.topic_id, by_id=by_id)
        return answers, partitions, missing

    def _append(
        self,
        partition: Partition | None,
        index: int,
        records: memoryview | None,
        missing: ErrorCode,
    ) -> PartitionResult:
        result = PartitionResult(index)
        if partition is None:
            result.error_code = missing
            return result
        admission = self._admission
        guard = admission.get((partition.topic, index)) if admission else None
        if isinstance(guard, Refusal):
            result.error_code, result.error_message = guard
            return result
        try:
            checked = _check(partition, records, self._request, self._wanted)
            now_ms = self._broker.clock.now_ms()
            if partition.is_appending or partition.takes_long(checked, now_ms=now_ms):
                self._delayed.append((partition, checked, result))
                return result
            version = self._request.version
            done = partition.append(checked, now_ms=now_ms, request_version=version, guard=guard)
        except KafkaError as error:
            _note_error(result, error, partition)
        except OSError as fault:  # another name: a compiled one has one type
            self._note_disk(result, fault, partition)
        else:
            self._note_done(result, done, partition)
        return result

    async def _finish(self) -> Reply:
        """Do the appends that wait for a turn or a thread, and the flushes that are due; answer."""
        for partition, records, result in self._delayed:
            now_ms = self._broker.clock.now_ms()
            version = self._request.version
            guard = self._admission.get((partition.topic, partition.index))
            assert not isinstance(guard, Refusal), "what is refused is not delayed"
            try:
                done = await partition.append_in_turn(
                    records, now_ms=now_ms, request_version=version, guard=guard
                )
            except KafkaError as error:
                _note_error(result, error, partition)
            except OSError as fault:
                self._note_disk(result, fault, partition)
            else:
                self._note_done(result, done, partition)
        if self._must_wait:
            return await self._reply_when_committed()
        self._withdraw_lost()
        return self._reply()

    def _reply_when_committed(self) -> asyncio.Future[Reply]:
        reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

        def answer() -> None:
            self._withdraw_lost()
            if not reply.done():  # the connection may have gone meanwhile
                reply.set_result(self._reply())

        appended = [Appended(*each) for each in self._appended]
        DelayedProduce(
            appended,
            timeout_ms=self._wanted.timeout_ms,
            deadlines=self._broker.replicas.commits.deadlines,
            on_done=answer,
        )
        return reply

    def _withdraw_lost(self) -> None:
        """Acknowledge nothing on a disk that has failed while others were waited for."""
        for partition, result, _ in self._appended:
            if not partition.directory.is_online:
                withdraw(result, ErrorCode.KAFKA_STORAGE_ERROR)

    def _note_done(self, result: PartitionResult, done: AppendResult, partition: Partition) -> None:
        result.base_offset = done.base_offset
        result.log_append_time_ms = done.log_append_time_ms
        result.log_start_offset = done.log_start_offset
        end_offset = done.last_offset + 1
        self._appended.append((partition, result, end_offset))
        if partition.log.high_watermark < end_offset and self._wanted.acks != 0:
            self._must_wait = True

    def _note_disk(self, result: PartitionResult, error: OSError, partition: Partition) -> None:
        self._broker.replicas.disk_failed(partition, error)
        withdraw(result, ErrorCode.KAFKA_STORAGE_ERROR)

    def _reply(self) -> Reply:
        if self._wanted.acks != 0:
            return [encode_produce(self._request.version, self._results)]
        failed = [
            f"{topic.name or topic.topic_id.hex()}-{result.index} "
            f"{ErrorCode(result.error_code).name}"
            for topic, answers in self._results
            for result in answers
            if result.error_code != ErrorCode.NONE
        ]
        if failed:
            raise CloseConnectionError(f"produce with acks=0 failed: {', '.join(failed[:5])}")
        return None


@handles_raw(ApiKey.PRODUCE)
def produce(broker: Broker, request: Request) -> Reply | Awaitable[Reply]:
    """Append what the request holds and answer per partition."""
    wanted = parse_produce(request.frame, request.position, request.version)
    produced = _Produce(broker, request, wanted)
    reply = produced.serve()
    produced.note_repetition()
    return reply


def _check(
    partition: Partition, records: memoryview | None, request: Request, wanted: ProduceRequest
) -> memoryview:
    """Refuse what can be told without the log (Kafka's ProduceRequest.validateRecords first).

    Raises:
        KafkaError: Why the records are not looked at any further.
    """
    if records is None or len(records) < HEADER_BYTES:
        raise RefusedBatchError(
            ErrorCode.INVALID_RECORD, "there is no record batch", is_request_fault=True
        )
    if not -1 <= wanted.acks <= 1:
        raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS)
    if is_internal(partition.topic) and request.client_id != _ADMIN_CLIENT_ID:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
    partition.check_leader()
    if wanted.acks == -1:
        partition.check_in_sync()
    return records


def _names_one_twice(topics: list[ProduceTopic]) -> bool:
    if len(topics) == 1 and len(topics[0].partitions) == 1:
        return False  # nearly always
    if len({(topic.name, topic.topic_id) for topic in topics}) < len(topics):
        return True
    return any(
        len(topic.partitions) > 1
        and len({index for index, _ in topic.partitions}) < len(topic.partitions)
        for topic in topics
    )


def _last_of_each(topics: list[ProduceTopic]) -> list[ProduceTopic]:
    """Keep of each partition what is named last: a large batch could not keep its order."""
    kept: dict[tuple[str, bytes], dict[int, ProducePartition]] = {}
    for topic in topics:
        partitions = kept.setdefault((topic.name, topic.topic_id), {})
        partitions.update((each[0], each) for each in topic.partitions)
    return [
        ProduceTopic(name, topic_id, list(partitions.values()))
        for (name, topic_id), partitions in kept.items()
    ]


def _note_error(result: PartitionResult, error: KafkaError, partition: Partition) -> None:
    result.error_code = error.code
    if error.code == ErrorCode.CORRUPT_MESSAGE and not isinstance(error, RefusedBatchError):
        # The records of a good batch that don't unpack: Kafka has no better code for it.
        result.error_code = ErrorCode.UNKNOWN_SERVER_ERROR
    is_request_fault = isinstance(error, RefusedBatchError) and error.is_request_fault
    if result.error_code not in _SILENT and not is_request_fault:
        result.log_start_offset = partition.log.log_start_offset
    # As in Kafka a sentence goes out only about single records, or bytes that are no batch.
    if isinstance(error, RefusedBatchError) and error.record_errors:
        result.record_errors = error.record_errors
        result.error_message = error.message
    elif is_request_fault and error.code == ErrorCode.CORRUPT_MESSAGE:
        result.error_message = error.message


def _has_transactional_records(wanted: ProduceRequest) -> bool:
    for topic in wanted.topics:
        for _, records in topic.partitions:
            if (
                records is not None
                and len(records) >= HEADER_BYTES
                and records[_ATTRIBUTES_POSITION] & TRANSACTIONAL_FLAG
            ):
                return True
    return False


def _count_partitions(topics: list[ProduceTopic]) -> int:
    return sum(len(topic.partitions) for topic in topics)
