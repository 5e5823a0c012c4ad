"""Consume, transform, produce: copies one partition exactly once, with transactions (KIP-890).

    InitProducerId -> OffsetFetch
        -> fetch, produce to each target, TxnOffsetCommit, EndTxn

An incarnation repeats what was not answered; any refusal ends it, as Kafka's producer is closed by
a fatal error, and the next one begins where the last transaction ended. Two may live at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.simulation.member import TOPIC
from tests.simulation.network import Link, LinkLostError
from tests.support.batches import batch
from tests.support.committed import committed_records_in, end_of_records
from tests.support.requests import FETCH_VERSION, PRODUCE_VERSION, fetch_request, produce_request
from wirebroker.clock import pause
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping
    from random import Random

    from tests.simulation.loop import Process
    from tests.simulation.model import Model
    from tests.simulation.network import Network

TARGET = "out"
TARGET_PARTITIONS = 2
READ_COMMITTED = 1
_REQUEST_TIMEOUT_S = 5.0
_BACKOFF_S = 0.1
_FETCH_WAIT_MS = 300
_MOST_RECORDS = 5
_TRANSACTION_KEY, _GROUP_KEY = 1, 0
_VERSIONS = {
    ApiKey.FIND_COORDINATOR: 1,
    ApiKey.INIT_PRODUCER_ID: 5,
    ApiKey.OFFSET_FETCH: 7,
    ApiKey.PRODUCE: PRODUCE_VERSION,
    ApiKey.FETCH: FETCH_VERSION,
    ApiKey.TXN_OFFSET_COMMIT: 5,
    ApiKey.END_TXN: 5,
}
_LOOK_AGAIN = {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE}
_AGAIN = {
    *_LOOK_AGAIN,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.UNSTABLE_OFFSET_COMMIT,
    ErrorCode.NOT_ENOUGH_REPLICAS,  # the coordinator of a Produce is being loaded
}
_FATAL = {
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.TRANSACTION_ABORTABLE,
}


class RefusedError(Exception):
    """This incarnation is over."""


class Copier:
    """One incarnation of a transactional id."""

    def __init__(
        self, process: Process, network: Network, model: Model, *, partition: int, timeout_ms: int
    ) -> None:
        self.process = process
        self.partition = partition
        self.name = f"copier-{partition}"
        self._timeout_ms = timeout_ms
        self._network = network
        self._random: Random = network.random
        self._model = model
        self._link: Link | None = None
        self._producer = (-1, -1)
        self._sequences: dict[int, int] = {}
        self._position = 0

    async def run(self) -> None:
        """Copy until refused."""
        try:
            await self._begin()
            while True:
                await self._copy()
        except RefusedError as error:
            self._model.count(str(error))

    async def _begin(self) -> None:
        request = {"transactional_id": self.name, "transaction_timeout_ms": self._timeout_ms}
        self._become(await self._ask(ApiKey.INIT_PRODUCER_ID, request))
        self._position = await self.committed()

    async def committed(self) -> int:
        """Return up to where everything is copied."""
        topic = {"name": TOPIC, "partition_indexes": [self.partition]}
        request = {"group_id": self.name, "topics": [topic], "require_stable": True}
        answer = await self._ask(ApiKey.OFFSET_FETCH, request)
        return max(0, answer.topics[0].partitions[0].committed_offset)

    async def _copy(self) -> None:
        """Copy what there is in one transaction."""
        request = fetch_request({(TOPIC, self.partition): self._position})
        request["max_wait_ms"] = _FETCH_WAIT_MS
        answer = await self._ask(ApiKey.FETCH, request)
        (found,) = answer.responses[0].partitions
        records = committed_records_in(found) if found.records else []
        records = [record for record in records if record[0] >= self._position][:_MOST_RECORDS]
        if not records:
            return
        values = [b"%d/%d" % (self.partition, offset) for offset, _ in records]
        for index in range(TARGET_PARTITIONS):
            await self._produce(index, values)
        following = records[-1][0] + 1
        await self._commit_offset(following)
        is_commit = self._random.random() < 0.85
        request = {**self._identity(), "committed": is_commit}
        self._become(await self._ask(ApiKey.END_TXN, request))
        self._model.count("commits" if is_commit else "aborts")
        if is_commit:
            self._position = following

    async def _produce(self, index: int, values: list[bytes]) -> None:
        sequence = self._sequences.get(index, 0)
        self._sequences[index] = sequence + len(values)
        data = batch(
            *values,
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
            base_sequence=sequence,
            is_transactional=True,
        )
        request = produce_request({(TARGET, index): data}, transactional_id=self.name)
        await self._ask(ApiKey.PRODUCE, request)

    async def _commit_offset(self, offset: int) -> None:
        partition = {"partition_index": self.partition, "committed_offset": offset}
        topics = [{"name": TOPIC, "partitions": [{**partition, "committed_metadata": ""}]}]
        request = {**self._identity(), "group_id": self.name, "topics": topics}
        await self._ask(ApiKey.TXN_OFFSET_COMMIT, request)

    def _identity(self) -> dict[str, Any]:
        producer_id, epoch = self._producer
        return {
            "transactional_id": self.name,
            "producer_id": producer_id,
            "producer_epoch": epoch,
        }

    def _become(self, answer: Any) -> None:
        self._producer = answer.producer_id, answer.producer_epoch
        self._sequences.clear()

    async def _ask(self, key: ApiKey, request: Mapping[str, Any]) -> Any:
        """Ask until it is answered.

        Raises:
            RefusedError: Another incarnation is there, or the transaction has been aborted.
        """
        while True:
            if self._link is None or self._link.is_closed:
                self._link = self._network.open(self.process)
            try:
                answer = await self._link.ask(
                    key, _VERSIONS[key], request, timeout_s=_REQUEST_TIMEOUT_S
                )
                error = error_of(key, answer)
                if error == ErrorCode.NONE:
                    return answer
                if error in _FATAL:
                    raise RefusedError(ErrorCode(error).name)
                assert error in _AGAIN, f"no client expects {ErrorCode(error).name} of {key.name}"
                if error in _LOOK_AGAIN:
                    await self._find_coordinators()
            except LinkLostError:
                pass
            await pause(_BACKOFF_S)

    async def _find_coordinators(self) -> None:
        """Have the topics of coordinators created."""
        assert self._link is not None
        for key_type in (_TRANSACTION_KEY, _GROUP_KEY):
            request = {"key": self.name, "key_type": key_type}
            await self._link.ask(ApiKey.FIND_COORDINATOR, 1, request, timeout_s=_REQUEST_TIMEOUT_S)

    async def read_target(self, index: int) -> list[bytes]:
        """Return what is committed in a partition of the target."""
        values: list[bytes] = []
        offset = 0
        while True:
            request = fetch_request({(TARGET, index): offset}, isolation_level=READ_COMMITTED)
            answer = await self._ask(ApiKey.FETCH, request)
            (found,) = answer.responses[0].partitions
            if not found.records:
                return values
            values += [value for _, value in committed_records_in(found)]
            offset = end_of_records(found.records)


def error_of(key: ApiKey, answer: Any) -> int:
    """Return the one error of an answer."""
    if key is ApiKey.PRODUCE:
        error = answer.responses[0].partition_responses[0].error_code
    elif key is ApiKey.TXN_OFFSET_COMMIT:
        error = answer.topics[0].partitions[0].error_code
    elif key is ApiKey.OFFSET_FETCH:
        error = answer.error_code or answer.topics[0].partitions[0].error_code
    elif key is ApiKey.FETCH:
        error = answer.error_code or answer.responses[0].partitions[0].error_code
    else:
        error = answer.error_code
    return int(error)
