"""A transactional producer as Kafka's clients of several ages are, one incarnation of an id.

    ApiVersions (which transaction.version?) -> InitProducerId
        -> [AddPartitionsToTxn] Produce, [AddOffsetsToTxn] TxnOffsetCommit, EndTxn

It repeats what was not answered; a refusal ends it, as Kafka's producer is closed by a fatal error.
From transaction.version 2 on a client of that age sends nothing in brackets, and has a new epoch
after each EndTxn (KIP-890).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tests.simulation.network import Link, LinkLostError
from tests.support.batches import batch
from tests.support.requests import FETCH_VERSION, fetch_request, produce_request
from wirebroker.clock import pause
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.feature_control import TRANSACTION_VERSION

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from random import Random

    from tests.simulation.loop import Process
    from tests.simulation.network import Network

_REQUEST_TIMEOUT_S = 5.0
_BACKOFF_S = 0.1
_TRANSACTION_KEY, _GROUP_KEY = 1, 0
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
    ErrorCode.UNSUPPORTED_VERSION,  # transaction.version was lowered
}
# A late batch of a former transaction of the same epoch waits for its verification, which blocks
# those that follow until a new epoch comes: nothing tells them apart, in Apache Kafka as here.
_FATAL_IN_SHARED_EPOCH = _FATAL | {ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER}
# What a group says of a member's offsets; the transaction has to be aborted.
GROUP_FENCES = {
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.FENCED_INSTANCE_ID,
}
_VERSIONS = {ApiKey.API_VERSIONS: 3, ApiKey.FIND_COORDINATOR: 1, ApiKey.FETCH: FETCH_VERSION}


class Versions(NamedTuple):
    """The requests of a client of some age."""

    init: int
    produce: int
    commit_offsets: int
    end: int
    adds: bool  # partitions and groups by requests of their own


# Before KIP-890; with TRANSACTION_ABORTABLE, for transaction.version 0 and 1; for 2.
_OLD_AGES = (Versions(4, 9, 3, 3, adds=True), Versions(5, 11, 4, 4, adds=True))
_NEW_AGE = Versions(5, 12, 5, 5, adds=False)
# KIP-890 is why these are safe however late they arrive.
SAFE_WHEN_LATE = {ApiKey.TXN_OFFSET_COMMIT: 5, ApiKey.END_TXN: 5}


class RefusedError(Exception):
    """The broker refuses for good."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(code.name)
        self.code = code


class Client:
    """Asks until it is answered."""

    def __init__(self, process: Process, network: Network, *, name: str) -> None:
        self.process = process
        self.name = name
        self._network = network
        self._link: Link | None = None

    async def ask(
        self,
        key: ApiKey,
        request: Mapping[str, Any],
        *,
        version: int | None = None,
        refusals: Collection[ErrorCode] = _FATAL,
    ) -> Any:
        """Return the answer of a request.

        Raises:
            RefusedError: It is one of `refusals`.
        """
        if version is None:
            version = _VERSIONS[key]
        while True:
            try:
                answer = await self._link_now().ask(
                    key, version, request, timeout_s=_REQUEST_TIMEOUT_S
                )
                error = ErrorCode(error_of(key, answer))
                if error is ErrorCode.NONE:
                    return answer
                if error in refusals:
                    raise RefusedError(error)
                assert error in _AGAIN, f"no client expects {error.name} of {key.name} v{version}"
                if error in _LOOK_AGAIN:
                    await self._find_coordinators()
            except LinkLostError:
                pass
            await pause(_BACKOFF_S)

    async def fetch(
        self, positions: Mapping[tuple[str, int], int], *, max_wait_ms: int = 0, isolation: int = 0
    ) -> Any:
        """Return what a Fetch finds."""
        request = fetch_request(positions, max_wait_ms=max_wait_ms, isolation_level=isolation)
        answer = await self.ask(ApiKey.FETCH, request)
        return answer.responses[0].partitions

    def _link_now(self) -> Link:
        if self._link is None or self._link.is_closed:
            self._link = self._network.open(self.process)
        return self._link

    async def _find_coordinators(self) -> None:
        """Have the topics of coordinators created."""
        for key_type in (_TRANSACTION_KEY, _GROUP_KEY):
            request = {"key": self.name, "key_type": key_type}
            await self._link_now().ask(
                ApiKey.FIND_COORDINATOR, 1, request, timeout_s=_REQUEST_TIMEOUT_S
            )


class Producer(Client):
    """One incarnation of a transactional id; all methods raise RefusedError when it is over."""

    def __init__(self, process: Process, network: Network, *, name: str, timeout_ms: int) -> None:
        super().__init__(process, network, name=name)
        self._timeout_ms = timeout_ms
        self._random: Random = network.random
        self._versions = _NEW_AGE
        self._producer = (-1, -1)
        # Whether several transactions may have the present epoch.
        self._shares_epoch = False
        self._sequences: dict[tuple[str, int], int] = {}

    async def begin(self) -> None:
        """Fence who was there before; what it had begun is aborted."""
        await self.look_at_features()
        request = {"transactional_id": self.name, "transaction_timeout_ms": self._timeout_ms}
        version = self._versions.init
        self._become(await self.ask(ApiKey.INIT_PRODUCER_ID, request, version=version))

    async def look_at_features(self) -> None:
        """Go by the transaction.version that is finalized; some clients know none but the first."""
        request = {"client_software_name": "simulation", "client_software_version": "1"}
        answer = await self.ask(ApiKey.API_VERSIONS, request)
        levels = {each.name: each.max_version_level for each in answer.finalized_features}
        is_new = levels.get(TRANSACTION_VERSION, 0) >= 2 and self._random.random() < 0.8
        self._versions = _NEW_AGE if is_new else self._random.choice(_OLD_AGES)

    async def produce(self, topic: str, index: int, values: list[bytes]) -> None:
        """Append a batch in the transaction."""
        versions = self._versions
        if versions.adds:
            request = {f"v3_and_below_{name}": each for name, each in self._identity().items()}
            request["v3_and_below_topics"] = [{"name": topic, "partitions": [index]}]
            await self.ask(ApiKey.ADD_PARTITIONS_TO_TXN, request, version=3)
        sequence = self._sequences.get((topic, index), 0)
        self._sequences[topic, index] = sequence + len(values)
        data = batch(
            *values,
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
            base_sequence=sequence,
            is_transactional=True,
        )
        request = produce_request({(topic, index): data}, transactional_id=self.name)
        self._shares_epoch |= versions.adds
        refusals = _FATAL_IN_SHARED_EPOCH if self._shares_epoch else _FATAL
        await self.ask(ApiKey.PRODUCE, request, version=versions.produce, refusals=refusals)

    async def commit_offsets(
        self, member: Mapping[str, Any], topic: str, offsets: Mapping[int, int]
    ) -> None:
        """Commit offsets in the transaction.

        Args:
            member: The group's id; of a member also its id, generation and instance.
            topic: What was read.
            offsets: By partition.

        Raises:
            RefusedError: With one of GROUP_FENCES: this transaction has to be aborted.
        """
        versions = self._versions
        if versions.adds:
            request = {**self._identity(), "group_id": member["group_id"]}
            await self.ask(ApiKey.ADD_OFFSETS_TO_TXN, request, version=3)
        partitions = [
            {"partition_index": index, "committed_offset": offset, "committed_metadata": ""}
            for index, offset in offsets.items()
        ]
        topics = [{"name": topic, "partitions": partitions}]
        await self.ask(
            ApiKey.TXN_OFFSET_COMMIT,
            {**self._identity(), **member, "topics": topics},
            version=versions.commit_offsets,
            refusals=_FATAL | GROUP_FENCES,
        )

    async def end(self, *, is_commit: bool) -> None:
        """Commit or abort the transaction."""
        request = {**self._identity(), "committed": is_commit}
        answer = await self.ask(ApiKey.END_TXN, request, version=self._versions.end)
        if not self._versions.adds:
            self._become(answer)

    def _identity(self) -> dict[str, Any]:
        producer_id, epoch = self._producer
        return {
            "transactional_id": self.name,
            "producer_id": producer_id,
            "producer_epoch": epoch,
        }

    def _become(self, answer: Any) -> None:
        self._producer = answer.producer_id, answer.producer_epoch
        self._shares_epoch = False
        self._sequences.clear()


def error_of(key: ApiKey, answer: Any) -> int:
    """Return the one error of an answer; of several partitions the first that has any."""
    errors = [0]
    match key:
        case ApiKey.PRODUCE:
            errors = [each.error_code for each in answer.responses[0].partition_responses]
        case ApiKey.ADD_PARTITIONS_TO_TXN:
            (topic,) = answer.results_by_topic_v3_and_below
            errors = [each.partition_error_code for each in topic.results_by_partition]
        case ApiKey.TXN_OFFSET_COMMIT:
            errors = [each.error_code for each in answer.topics[0].partitions]
        case ApiKey.OFFSET_FETCH:
            errors = [answer.error_code]
            errors += [each.error_code for topic in answer.topics for each in topic.partitions]
        case ApiKey.FETCH:
            errors = [answer.error_code]
            errors += [each.error_code for topic in answer.responses for each in topic.partitions]
        case _:
            errors = [answer.error_code]
    return int(next(filter(None, errors), 0))
