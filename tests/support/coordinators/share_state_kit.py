"""A share state shard with a list as its log, which commits immediately or fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support.coordinators.kit import image_of as image_of_records
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.metadata_records import RecordType, metadata_record
from wirebroker.coordinator.outcome import Moment, Outcome
from wirebroker.coordinator.share_state import operations, upkeep
from wirebroker.coordinator.share_state.errors import state_error
from wirebroker.coordinator.share_state.settings import ShareStateSettings
from wirebroker.coordinator.share_state.shard import ShareStateShard
from wirebroker.coordinator.share_state.state import SharePartitionKey, StateBatch, StateWrite

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wirebroker.codecs.coordinator_records import CoordinatorRecord
    from wirebroker.codecs.metadata_records import MetadataRecord
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.share_state.state import PersistedState, StateError, StateSummary

START_MS = 1_000_000
TOPIC, OTHER_TOPIC = b"t" * 16, b"o" * 16
PARTITIONS = 3
GROUP = "g"


def image_of(*topic_ids: bytes) -> ClusterImage:
    """Return a cluster with topics of PARTITIONS partitions."""
    return image_of_records(
        *(
            record
            for topic_id in topic_ids
            for record in (
                metadata_record(RecordType.TOPIC, name=topic_id.hex(), topic_id=topic_id),
                *(_partition(topic_id, index) for index in range(PARTITIONS)),
            )
        )
    )


def _partition(topic_id: bytes, index: int) -> MetadataRecord:
    return metadata_record(
        RecordType.PARTITION,
        topic_id=topic_id,
        partition_id=index,
        replicas=[1],
        isr=[1],
        leader=1,
    )


def key_of(partition: int = 0, topic_id: bytes = TOPIC, group_id: str = GROUP) -> SharePartitionKey:
    return SharePartitionKey(group_id, topic_id, partition)


def batches(*described: str) -> tuple[StateBatch, ...]:
    """Return batches of texts such as `0-9 s2 c1`: offsets, delivery state, delivery count."""
    return tuple(_batch(text) for text in described)


def _batch(text: str) -> StateBatch:
    offsets, state, count = text.split()
    first, _, last = offsets.partition("-")
    return StateBatch(int(first), int(last or first), int(state[1:]), int(count[1:]))


class ShareStates:
    """A shard and its log: records by offset, from the log's start offset on."""

    def __init__(
        self,
        image: ClusterImage | None = None,
        *,
        log: Iterable[tuple[int, CoordinatorRecord]] = (),
        **settings: Any,
    ) -> None:
        self.settings = settings
        self.log = list(log)
        self.end_offset = 0
        self.now_ms = 0
        self.fails_with: ErrorCode | None = None
        self._offset = 0
        self.image = image or image_of(TOPIC, OTHER_TOPIC)
        self.shard = ShareStateShard(
            ShareStateSettings(**settings), self.image, batch_offset=lambda: self._offset
        )
        for offset, record in self.log:
            self._offset = offset
            self.end_offset = offset + 1
            self.shard.replay(*record)
        self.shard.check()

    @property
    def moment(self) -> Moment:
        return Moment(START_MS + self.now_ms, self.now_ms)

    def reloaded(self) -> ShareStates:
        """Return the shard after a restart from the log."""
        loaded = ShareStates(self.image, log=self.log, **self.settings)
        loaded.now_ms = self.now_ms
        loaded.end_offset = self.end_offset
        return loaded

    def run(self, operation: Any, *arguments: Any) -> Any:
        """Run an operation; return its result."""
        results: list[Any] = []
        try:
            self._carry_out(operation(self.shard, *arguments, results, self.moment), results)
        except KafkaError as error:
            return state_error(error.code)
        self.shard.check()
        (result,) = results
        return result

    def sweep(self, outcomes: Iterable[Outcome]) -> int:
        """Carry out a sweep; return the number of records."""
        count = 0
        for outcome in outcomes:
            count += len(outcome.records)
            self._carry_out(outcome, [])
        self.shard.check()
        return count

    def _carry_out(self, outcome: Outcome, results: list[Any]) -> None:
        if outcome.records and self.fails_with is not None:
            results.append(state_error(self.fails_with))
            return
        for record in outcome.records:
            self._offset = self.end_offset
            self.end_offset += 1
            self.log.append((self._offset, record))
            self.shard.replay(*record)
        results += [response["result"] for _, response in outcome.answers]

    # -- requests --------------------------------------------------------------------------------

    def initialize(
        self, state_epoch: int = 0, start_offset: int = 0, key: SharePartitionKey | None = None
    ) -> StateError | None:
        return self.run(operations.initialize, key or key_of(), (state_epoch, start_offset))

    def read(
        self, leader_epoch: int = 0, key: SharePartitionKey | None = None
    ) -> PersistedState | StateError:
        return self.run(operations.read, key or key_of(), leader_epoch)

    def write(
        self,
        *described: str | StateBatch,
        start_offset: int = -1,
        complete: int = 0,
        state_epoch: int = 0,
        leader_epoch: int = 0,
        key: SharePartitionKey | None = None,
    ) -> StateError | None:
        newer = tuple(
            text if isinstance(text, StateBatch) else batches(text)[0] for text in described
        )
        written = StateWrite(state_epoch, leader_epoch, start_offset, complete, newer)
        return self.run(operations.write, key or key_of(), written)

    def delete(self, key: SharePartitionKey | None = None) -> StateError | None:
        return self.run(operations.delete, key or key_of())

    def summary(self, key: SharePartitionKey | None = None) -> StateSummary | StateError:
        return self.run(operations.read_summary, key or key_of())

    def redundant_end(self) -> int:
        return self.run(upkeep.redundant_end)

    def prune(self) -> None:
        """Delete the redundant records."""
        end = self.redundant_end()
        self.log = [(offset, record) for offset, record in self.log if offset >= end]
