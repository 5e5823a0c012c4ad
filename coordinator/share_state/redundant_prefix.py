"""The part of a log that newer snapshots have made redundant.

Source: Kafka's ShareCoordinatorOffsetsManager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wirebroker.coordinator.share_state.state import SharePartitionKey


class RedundantPrefix:
    """The offsets of all partitions' last snapshots.

    Attributes:
        end_offset: Records below it are not needed; None without any snapshot.
    """

    __slots__ = ("_offsets", "end_offset")

    # The offsets of _offsets rise, because log offsets do.

    def __init__(self) -> None:
        self._offsets: dict[SharePartitionKey, int] = {}
        self.end_offset: int | None = None

    def note(self, key: SharePartitionKey, offset: int, *, is_deletion: bool = False) -> None:
        """Note the offset of a snapshot, or of the record that deletes a partition."""
        self._offsets.pop(key, None)
        self._offsets[key] = offset
        self.end_offset = next(iter(self._offsets.values()))
        if is_deletion:
            del self._offsets[key]
