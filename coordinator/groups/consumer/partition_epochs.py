"""The owners of a group's partitions, as their member epochs.

A partition may be given to a member only if no other member owns it or is still giving it up.

Source: Kafka's ConsumerGroup.currentPartitionEpoch, addPartitionEpochs and removePartitionEpochs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.coordinator.groups.consumer.consumer_member import (
        AssignedPartitions,
        ConsumerMember,
    )

NO_OWNER: Final = -1
_NO_EPOCHS: Final[Mapping[int, int]] = {}


class PartitionEpochs:
    """The epochs of the members that have partitions, by topic id and partition.

    Attributes:
        version: Rises with each change.
    """

    __slots__ = ("_epochs", "_notes", "version")

    def __init__(self) -> None:
        self._epochs: dict[bytes, dict[int, int]] = {}
        self._notes: list[set[bytes]] = []
        self.version = 0

    def note_new_owners(self) -> set[bytes]:
        """Return a set that collects the topics whose partitions get owners, until `forget`."""
        topic_ids: set[bytes] = set()
        self._notes.append(topic_ids)
        return topic_ids

    def forget(self, topic_ids: set[bytes]) -> None:
        """Stop adding topics to a set of `note_new_owners`."""
        # By identity: other sets may have the same topics.
        self._notes = [other for other in self._notes if other is not topic_ids]

    def of(self, topic_id: bytes, partition: int) -> int:
        """Return the epoch of the member that has a partition, or NO_OWNER."""
        return self._epochs.get(topic_id, {}).get(partition, NO_OWNER)

    def of_topic(self, topic_id: bytes) -> Mapping[int, int]:
        """Return the epochs of a topic's partitions that have owners."""
        return self._epochs.get(topic_id, _NO_EPOCHS)

    def replace(self, old: ConsumerMember | None, new: ConsumerMember | None) -> None:
        """Note that a member has changed, joined or left."""
        if old is not None and new is not None and _is_same(old, new):
            return
        self.version += 1
        # If only the epoch changed, adding the new epochs replaces the old ones.
        if old is not None and (new is None or not _has_same_partitions(old, new)):
            self._remove(old.assigned, old.epoch)
            self._remove(old.revoking, old.epoch)
        if new is not None:
            self._add(new.assigned, new.epoch)
            self._add(new.revoking, new.epoch)

    def _remove(self, partitions: AssignedPartitions, epoch: int) -> None:
        for topic_id, indexes in partitions.items():
            epochs = self._epochs.get(topic_id)
            if epochs is None:
                continue
            for index in indexes:
                # Another epoch is that of a later owner.
                if epochs.get(index) == epoch:
                    del epochs[index]
            if not epochs:
                del self._epochs[topic_id]

    def _add(self, partitions: AssignedPartitions, epoch: int) -> None:
        for topic_ids in self._notes:
            topic_ids.update(partitions)
        for topic_id, indexes in partitions.items():
            known = self._epochs.get(topic_id)
            if known is not None:
                known.update(dict.fromkeys(indexes, epoch))
            elif indexes:
                self._epochs[topic_id] = dict.fromkeys(indexes, epoch)

    def check(self, members: Mapping[str, ConsumerMember]) -> None:
        """Assert that exactly the members' partitions have epochs, and each one owner."""
        expected: dict[bytes, dict[int, int]] = {}
        for member in members.values():
            for partitions in (member.assigned, member.revoking):
                for topic_id, indexes in partitions.items():
                    for index in indexes:
                        owned = expected.setdefault(topic_id, {})
                        assert index not in owned, f"partition {index} has two owners"
                        owned[index] = member.epoch
        assert self._epochs == expected, "the epochs are those of the members"


def _is_same(old: ConsumerMember, new: ConsumerMember) -> bool:
    return _has_same_partitions(old, new) and old.epoch == new.epoch


def _has_same_partitions(old: ConsumerMember, new: ConsumerMember) -> bool:
    return old.assigned is new.assigned and old.revoking is new.revoking
