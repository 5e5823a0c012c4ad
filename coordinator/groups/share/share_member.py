"""A member of a share group: its subscription, its epochs and its partitions.

Members are immutable: each change creates a new one. Records restore them. A member has its new
partitions immediately, since other members may have them too; its state in records is always 0,
which is Kafka's STABLE.

Source: Kafka's ShareGroupMember; KIP-932.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from wirebroker.coordinator.groups.consumer.consumer_member import JOIN_EPOCH, LEAVE_EPOCH

if TYPE_CHECKING:
    from collections.abc import Mapping

NO_ASSIGNMENT: Final[Mapping[bytes, frozenset[int]]] = {}


def _no_assignment() -> Mapping[bytes, frozenset[int]]:
    return NO_ASSIGNMENT


@dataclass(slots=True, frozen=True)
class ShareGroupMember:
    """A member.

    Attributes:
        epoch: The assignment epoch that it has reached.
        previous_epoch: The epoch before; a heartbeat with it may be a retry.
        topic_names: The topics that it subscribes to.
        assigned: The partitions that it may read, by topic id.
    """

    member_id: str
    epoch: int = JOIN_EPOCH
    previous_epoch: int = -1
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()
    assigned: Mapping[bytes, frozenset[int]] = field(default_factory=_no_assignment)

    @property
    def metadata_bytes(self) -> int:
        """Bytes of the metadata that it joined with."""
        of_texts = len(self.member_id) + len(self.rack_id or "")
        return sum(map(len, self.topic_names)) + of_texts

    def with_epoch(self, epoch: int, **changes: Any) -> ShareGroupMember:
        """Return the member in another epoch, with other changes."""
        return replace(self, epoch=epoch, previous_epoch=self.epoch, **changes)

    def with_partitions(self, assigned: Mapping[bytes, frozenset[int]]) -> ShareGroupMember:
        """Return the member with other partitions in the same epoch."""
        return replace(self, assigned=assigned)

    def as_gone(self) -> ShareGroupMember:
        """Return a member whose current assignment was deleted."""
        return replace(self, epoch=LEAVE_EPOCH, previous_epoch=LEAVE_EPOCH, assigned=NO_ASSIGNMENT)
