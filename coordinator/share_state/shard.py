"""The state machine of one partition of `__share_group_state`: the state of share partitions.

Other modules have the operations, functions of (shard, request, token, now).

Source: Kafka's ShareCoordinatorShard.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.codecs.records.batch import NO_PRODUCER_ID
from wirebroker.codecs.share_state_records import (
    ShareStateKind,
    decode_share_state_key,
    decode_share_state_value,
)
from wirebroker.coordinator.outcome import Moment, Outcome, Timers
from wirebroker.coordinator.share_state.redundant_prefix import RedundantPrefix
from wirebroker.coordinator.share_state.state import SharePartitionKey
from wirebroker.coordinator.share_state.stored_state import (
    StoredState,
    batches_of,
    state_of_snapshot,
    state_of_update,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wirebroker.codecs.coordinator_records import CoordinatorRecord
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.share_state.settings import ShareStateSettings


class RecordedPartition:
    """The state of one share partition, and what its records say besides.

    Attributes:
        state: The state.
        leader_epoch: The highest leader epoch of its records; lower ones are fenced.
        state_epoch: The highest state epoch of its snapshots; lower ones are fenced.
        update_count: The updates since a snapshot was due.
    """

    __slots__ = ("leader_epoch", "state", "state_epoch", "update_count")

    def __init__(self, state: StoredState) -> None:
        self.state = state
        self.leader_epoch = state.leader_epoch
        self.state_epoch = state.state_epoch
        self.update_count = 0


class ShareStateShard:
    """The share partitions whose keys hash to one partition of the topic.

    Attributes:
        image: The metadata that this node has applied.
        recorded: The state by share partition; only `replay` changes it.
        redundant_prefix: The part of the log that is not needed.
    """

    __slots__ = ("_batch_offset", "image", "recorded", "redundant_prefix", "settings", "timers")

    def __init__(
        self, settings: ShareStateSettings, image: ClusterImage, *, batch_offset: Callable[[], int]
    ) -> None:
        """Begin empty; `batch_offset` returns the offset of the batch that is being replayed."""
        self.settings = settings
        self.image = image
        self._batch_offset = batch_offset
        self.recorded: dict[SharePartitionKey, RecordedPartition] = {}
        self.redundant_prefix = RedundantPrefix()
        self.timers = Timers()

    def apply(self, records: Sequence[CoordinatorRecord], producer_id: int) -> None:
        """Replay appended records."""
        for key, value in records:
            self.replay(key, value, producer_id)

    def replay(self, key: bytes, value: bytes | None, producer_id: int = NO_PRODUCER_ID) -> None:
        """Apply a record of the log; transactions never contain any.

        Raises:
            KafkaError: UNSUPPORTED_VERSION, or as merge_batches. MalformedFrameError: Malformed
                record.
        """
        del producer_id
        decoded = decode_share_state_key(key)
        if decoded is None:
            return
        partition_key = SharePartitionKey(*decoded[1:])
        if decoded.kind is ShareStateKind.SHARE_SNAPSHOT:
            self._replay_snapshot(partition_key, value)
        elif value is not None:  # Kafka deletes snapshots only
            self._replay_update(partition_key, decode_share_state_value(decoded.kind, value))

    def _replay_snapshot(self, key: SharePartitionKey, value: bytes | None) -> None:
        self.redundant_prefix.note(key, self._batch_offset(), is_deletion=value is None)
        if value is None:
            self.recorded.pop(key, None)
            return
        state = state_of_snapshot(decode_share_state_value(ShareStateKind.SHARE_SNAPSHOT, value))
        partition = self.recorded.get(key)
        if partition is None:
            self.recorded[key] = RecordedPartition(state)
            return
        partition.state = state
        partition.leader_epoch = max(partition.leader_epoch, state.leader_epoch)
        partition.state_epoch = max(partition.state_epoch, state.state_epoch)
        if partition.update_count >= self.settings.updates_per_snapshot:
            partition.update_count = 0

    def _replay_update(self, key: SharePartitionKey, value: Any) -> None:
        partition = self.recorded.get(key)
        if partition is None:
            partition = self.recorded[key] = RecordedPartition(state_of_update(value))
        else:
            partition.state = partition.state.updated(
                leader_epoch=value.leader_epoch,
                start_offset=value.start_offset,
                delivery_complete_count=value.delivery_complete_count,
                batches=batches_of(value),
            )
            partition.leader_epoch = max(partition.leader_epoch, value.leader_epoch)
        partition.update_count += 1

    def replay_end(self, producer_id: int, is_commit: bool) -> None:
        """Ignore a marker: no transaction has records here."""

    def on_loaded(self, now: Moment) -> Outcome:
        """Begin to serve."""
        del now
        return Outcome()

    def on_unloaded(self) -> Outcome:
        """Return no responses: only the engine has waiters."""
        return Outcome()

    def on_timer(self, event: Any, now: Moment) -> Outcome:
        """Fail: there are no timers."""
        raise AssertionError(f"an unexpected timer: {event} at {now}")

    def describe(self) -> str:
        """Describe the content for the log."""
        return f"{len(self.recorded)} share partitions"

    def check(self) -> None:
        """Assert the invariants."""
        for partition in self.recorded.values():
            assert partition.leader_epoch >= partition.state.leader_epoch
            assert partition.state_epoch >= partition.state.state_epoch
            assert partition.update_count >= 0
