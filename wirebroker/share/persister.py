"""The interface through which the broker stores and reads the state of share partitions.

Source: Kafka's Persister.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from wirebroker.coordinator.share_state.state import StateWrite

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from wirebroker.coordinator.share_state.state import (
        PersistedState,
        StateError,
        StateSummary,
    )


__all__ = ("Persister", "StateWrite")


class Persister(Protocol):
    """Stores the state of share partitions, named by topic id and partition.

    No method raises because of a partition: each requested partition has a result.
    """

    async def initialize(
        self, group_id: str, partitions: Mapping[tuple[bytes, int], tuple[int, int]]
    ) -> dict[tuple[bytes, int], StateError | None]:
        """Create the state of partitions, each with a state epoch and a start offset."""
        ...

    async def read(
        self, group_id: str, partitions: Mapping[tuple[bytes, int], int]
    ) -> dict[tuple[bytes, int], PersistedState | StateError]:
        """Read the state of partitions, each for a leader epoch."""
        ...

    async def write(
        self, group_id: str, partitions: Mapping[tuple[bytes, int], StateWrite]
    ) -> dict[tuple[bytes, int], StateError | None]:
        """Change the state of partitions."""
        ...

    async def delete(
        self, group_id: str, partitions: Collection[tuple[bytes, int]]
    ) -> dict[tuple[bytes, int], StateError | None]:
        """Delete the state of partitions."""
        ...

    async def read_summary(
        self, group_id: str, partitions: Mapping[tuple[bytes, int], int]
    ) -> dict[tuple[bytes, int], StateSummary | StateError]:
        """Read the offsets and epochs of partitions, each for a leader epoch."""
        ...
