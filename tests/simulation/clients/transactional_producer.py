"""A transactional producer that behaves like Kafka's clients; one incarnation of an id.

It follows the transaction.version of the ApiVersions response. It retries requests without a
response; a refusal ends it, as a fatal error closes Kafka's producer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.simulation.network.link import Link, LinkLostError
from tests.support.protocol.requests import FETCH_VERSION, fetch_request
from tests.support.protocol.transactional_producer import (
    AGAIN,
    LOOK_AGAIN,
    NEW_AGE,
    OLD_AGES,
    TransactionalProducer,
    coordinators_of,
    error_of,
)
from wirebroker.base.clock import pause
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.controller.features.feature_control import TRANSACTION_VERSION

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from random import Random

    from tests.simulation.machine.loop import Process
    from tests.simulation.network.network import Network
    from tests.support.protocol.transactional_producer import Ask

_REQUEST_TIMEOUT_S = 5.0
_BACKOFF_S = 0.1
_AGAIN = AGAIN | {ErrorCode.UNSTABLE_OFFSET_COMMIT}
_FATAL = {
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.TRANSACTION_ABORTABLE,
    ErrorCode.UNSUPPORTED_VERSION,  # transaction.version was lowered
}
# A late batch of an earlier transaction of the same epoch waits for its verification. It blocks the
# following batches until a new epoch begins, because they look alike; as in Apache Kafka.
_FATAL_IN_SHARED_EPOCH = _FATAL | {ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER}
# Group errors for a member's offsets; the transaction has to be aborted.
GROUP_FENCES = {
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.FENCED_INSTANCE_ID,
}
_VERSIONS = {ApiKey.API_VERSIONS: 3, ApiKey.FETCH: FETCH_VERSION}


# First versions that are safe however late they arrive (KIP-890).
SAFE_WHEN_LATE = {ApiKey.TXN_OFFSET_COMMIT: 5, ApiKey.END_TXN: 5}


class RefusedError(Exception):
    """The broker refuses permanently."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(code.name)
        self.code = code


class Client:
    """Retries requests until it gets a response."""

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
        """Return the response to a request.

        Raises:
            RefusedError: The error is one of `refusals`.
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
                if error in LOOK_AGAIN:
                    await self._find_coordinators()
            except LinkLostError:
                pass
            await pause(_BACKOFF_S)

    async def fetch(
        self, positions: Mapping[tuple[str, int], int], *, max_wait_ms: int = 0, isolation: int = 0
    ) -> Any:
        request = fetch_request(positions, max_wait_ms=max_wait_ms, isolation_level=isolation)
        answer = await self.ask(ApiKey.FETCH, request)
        return answer.responses[0].partitions

    def _link_now(self) -> Link:
        if self._link is None or self._link.is_closed:
            self._link = self._network.open(self.process)
        return self._link

    async def _find_coordinators(self) -> None:
        for find in coordinators_of(self.name):
            await self._link_now().ask(*find, timeout_s=_REQUEST_TIMEOUT_S)


class Producer(Client):
    """One incarnation of a transactional id; all methods raise RefusedError when it is closed."""

    def __init__(self, process: Process, network: Network, *, name: str, timeout_ms: int) -> None:
        super().__init__(process, network, name=name)
        self._random: Random = network.random
        self._id = TransactionalProducer(name, timeout_ms=timeout_ms)
        # Whether several transactions may have the current epoch.
        self._shares_epoch = False

    async def begin(self) -> None:
        """Fence the former incarnation and abort its transaction."""
        await self.look_at_features()
        self._id.become(await self._send(self._id.init()))
        self._shares_epoch = False

    async def look_at_features(self) -> None:
        """Use the finalized transaction.version; some clients support only the first."""
        request = {"client_software_name": "simulation", "client_software_version": "1"}
        answer = await self.ask(ApiKey.API_VERSIONS, request)
        levels = {feature.name: feature.max_version_level for feature in answer.finalized_features}
        is_new = levels.get(TRANSACTION_VERSION, 0) >= 2 and self._random.random() < 0.8
        self._id.versions = NEW_AGE if is_new else self._random.choice(OLD_AGES)

    async def produce(self, topic: str, index: int, values: list[bytes]) -> None:
        *before, produce = self._id.appending({(topic, index): values})
        for ask in before:
            await self._send(ask)
        self._shares_epoch |= self._id.versions.adds
        await self._send(produce, _FATAL_IN_SHARED_EPOCH if self._shares_epoch else _FATAL)

    async def commit_offsets(
        self, member: Mapping[str, Any], topic: str, offsets: Mapping[int, int]
    ) -> None:
        """Commit offsets in the transaction.

        Args:
            member: The group's id; for a member also its id, generation and instance.
            topic: The source topic.
            offsets: By partition.

        Raises:
            RefusedError: With one of GROUP_FENCES: this transaction has to be aborted.
        """
        *before, commit = self._id.committing(member, topic, offsets)
        for ask in before:
            await self._send(ask)
        await self._send(commit, _FATAL | GROUP_FENCES)

    async def end(self, *, is_commit: bool) -> None:
        ends_epoch = not self._id.versions.adds
        self._id.ended(await self._send(self._id.end(is_commit=is_commit)))
        self._shares_epoch &= not ends_epoch

    async def _send(self, ask: Ask, refusals: Collection[ErrorCode] = _FATAL) -> Any:
        return await self.ask(ask.key, ask.request, version=ask.version, refusals=refusals)
