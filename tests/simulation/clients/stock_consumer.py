"""A consumer that detects lost records by leader epochs, as Kafka's consumer does.

    Metadata has a newer epoch -> OffsetForLeaderEpoch of the last record's epoch
        ends at the position or after it: continue
        ends before it: the records from there on are lost, read again from there
        nothing is known: start over (auto.offset.reset=earliest)
    Fetch sends the known epoch: FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH -> Metadata

It reads all partitions of a topic, without a group. It does not compare records.

Source: KIP-320; Kafka's SubscriptionState, OffsetsForLeaderEpochUtils, FetchCollector.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tests.simulation.network.link import LinkLostError
from tests.support.protocol.requests import FETCH_VERSION, fetch_request
from wirebroker.base.clock import pause
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.records.batch import iterate_batches, iterate_records

if TYPE_CHECKING:
    from collections.abc import Collection

    from tests.simulation.clients.model import Model
    from tests.simulation.machine.loop import Process
    from tests.simulation.network.link import Link
    from tests.simulation.network.network import Network

_REQUEST_TIMEOUT_S = 5.0
_BACKOFF_S = 0.1
_FETCH_WAIT_MS = 300
_METADATA_VERSION = 12
_LIST_OFFSETS_VERSION = 7
_EPOCHS_VERSION = 4
_EARLIEST = -2
_UNKNOWN = -1
# Errors after which a consumer refreshes its metadata.
_LOOK_AGAIN = {
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}


class Seen(NamedTuple):
    value: bytes
    leader_epoch: int


class _Position:
    """The state of one partition; the next offset is len(seen)."""

    __slots__ = ("is_checked", "is_reset", "last_epoch", "leader_epoch", "seen")

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        # Epoch of the last record read, or the one that the broker gave for the position.
        self.last_epoch = _UNKNOWN
        self.leader_epoch = _UNKNOWN
        # Whether the position was validated in the known leader epoch.
        self.is_checked = False
        self.is_reset = False

    def go_back(self, offset: int, last_epoch: int) -> None:
        del self.seen[offset:]
        self.last_epoch = last_epoch
        self.is_checked = True


class StockConsumer:
    """Reads all partitions of a topic from their beginnings."""

    def __init__(
        self, process: Process, network: Network, model: Model, *, topic: str, partition_count: int
    ) -> None:
        self.process = process
        self._network = network
        self._model = model
        self._random = network.random
        self._topic = topic
        self._positions = [_Position() for _ in range(partition_count)]
        self._needs_metadata = True
        self._link: Link | None = None

    def values(self, partition: int) -> list[bytes]:
        return [record.value for record in self._positions[partition].seen]

    async def run(self) -> None:
        while True:
            try:
                await self._step()
            except LinkLostError:
                # A client may continue with its old metadata on another connection.
                self._needs_metadata |= self._random.random() < 0.5
                await pause(_BACKOFF_S)

    async def _step(self) -> None:
        if self._needs_metadata:
            await self._look_up()
        for index, position in enumerate(self._positions):
            if position.is_reset:
                await self._reset(index, position)
            elif not position.is_checked:
                await self._check(index, position)
        await self._fetch()
        if self._random.random() < 0.3:
            await pause(self._random.expovariate(1))

    async def _ask(self, key: ApiKey, version: int, request: dict[str, Any]) -> Any:
        if self._link is None or self._link.is_closed:
            self._link = self._network.open(self.process)
        return await self._link.ask(key, version, request, timeout_s=_REQUEST_TIMEOUT_S)

    def _knows(self, code: int, *, expected: Collection[ErrorCode] = ()) -> bool:
        """Return whether there is no error; note one that new metadata may resolve."""
        error = ErrorCode(code)
        if error is ErrorCode.NONE:
            return True
        assert error in _LOOK_AGAIN or error in expected, f"no consumer expects {error.name}"
        self._model.count(f"consumers: {error.name}")
        self._needs_metadata |= error in _LOOK_AGAIN
        return False

    async def _look_up(self) -> None:
        """Fetch metadata; a newer epoch requires a check of the position."""
        request = {"topics": [{"name": self._topic}]}
        answer = await self._ask(ApiKey.METADATA, _METADATA_VERSION, request)
        self._needs_metadata = False
        if not self._knows(answer.topics[0].error_code):
            return
        for partition in answer.topics[0].partitions:
            position = self._positions[partition.partition_index]
            if self._knows(partition.error_code) and partition.leader_epoch > position.leader_epoch:
                position.leader_epoch = partition.leader_epoch
                # Without the epoch of a record there is nothing to check.
                position.is_checked = position.last_epoch == _UNKNOWN

    async def _check(self, index: int, position: _Position) -> None:
        """Fetch the end offset of the last record's epoch, and compare it with the position."""
        requested = {
            "partition": index,
            "current_leader_epoch": position.leader_epoch,
            "leader_epoch": position.last_epoch,
        }
        request = {"replica_id": -1, "topics": [{"topic": self._topic, "partitions": [requested]}]}
        answer = await self._ask(ApiKey.OFFSET_FOR_LEADER_EPOCH, _EPOCHS_VERSION, request)
        result = answer.topics[0].partitions[0]
        if not self._knows(result.error_code):
            return
        if result.leader_epoch < 0 or result.end_offset < 0:
            position.is_reset = True
        elif result.end_offset < len(position.seen):
            self._model.count("consumers that detected a loss")
            position.go_back(result.end_offset, result.leader_epoch)
        else:
            position.is_checked = True

    async def _reset(self, index: int, position: _Position) -> None:
        requested = {
            "partition_index": index,
            "current_leader_epoch": position.leader_epoch,
            "timestamp": _EARLIEST,
        }
        request = {"replica_id": -1, "topics": [{"name": self._topic, "partitions": [requested]}]}
        answer = await self._ask(ApiKey.LIST_OFFSETS, _LIST_OFFSETS_VERSION, request)
        result = answer.topics[0].partitions[0]
        if self._knows(result.error_code):
            assert result.offset == 0, "nothing is ever deleted here"
            self._model.count("consumers that restart at the beginning")
            position.go_back(0, result.leader_epoch)
            position.is_reset = False

    async def _fetch(self) -> None:
        ready = {
            index: position
            for index, position in enumerate(self._positions)
            if position.is_checked and not position.is_reset
        }
        for epoch in {position.leader_epoch for position in ready.values()}:
            offsets = {
                (self._topic, index): len(position.seen)
                for index, position in ready.items()
                if position.leader_epoch == epoch
            }
            request = fetch_request(
                offsets,
                max_wait_ms=_FETCH_WAIT_MS,
                current_leader_epoch=epoch,
                last_fetched_epoch=_UNKNOWN,
            )
            answer = await self._ask(ApiKey.FETCH, FETCH_VERSION, request)
            for partition in answer.responses[0].partitions:
                self._take(ready[partition.partition_index], partition)

    def _take(self, position: _Position, partition: Any) -> None:
        if not self._knows(partition.error_code, expected={ErrorCode.OFFSET_OUT_OF_RANGE}):
            position.is_reset |= partition.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
            return
        view = memoryview(partition.records or b"")
        for start, header in iterate_batches(view):
            for record in iterate_records(view[start : start + header.size], header):
                if record.offset < len(position.seen):
                    continue
                assert record.offset == len(position.seen), "the broker skips a record"
                position.seen.append(Seen(record.value or b"", header.leader_epoch))
                position.last_epoch = header.leader_epoch
                self._model.count("records read")
