"""The persister that stores nothing, for clusters without share groups.

Source: Kafka's NoOpStatePersister.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.coordinator.share_state.batch_merge import NO_START_OFFSET
from wirebroker.coordinator.share_state.state import PersistedState, StateError, StateSummary
from wirebroker.coordinator.share_state.stored_state import NO_COUNT

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from wirebroker.share.persister import StateWrite
    from wirebroker.share.state_rpcs import Partition

_STATE: Final = PersistedState(0, NO_START_OFFSET, NO_COUNT, ())
_SUMMARY: Final = StateSummary(0, 0, NO_START_OFFSET, NO_COUNT)


class NoOpPersister:
    """A Persister for which every request succeeds."""

    __slots__ = ()

    async def initialize(
        self, group_id: str, partitions: Mapping[Partition, tuple[int, int]]
    ) -> dict[Partition, StateError | None]:
        """See Persister."""
        del group_id
        return dict.fromkeys(partitions)

    async def read(
        self, group_id: str, partitions: Mapping[Partition, int]
    ) -> dict[Partition, PersistedState | StateError]:
        """See Persister."""
        del group_id
        return dict.fromkeys(partitions, _STATE)

    async def write(
        self, group_id: str, partitions: Mapping[Partition, StateWrite]
    ) -> dict[Partition, StateError | None]:
        """See Persister."""
        del group_id
        return dict.fromkeys(partitions)

    async def delete(
        self, group_id: str, partitions: Collection[Partition]
    ) -> dict[Partition, StateError | None]:
        """See Persister."""
        del group_id
        return dict.fromkeys(partitions)

    async def read_summary(
        self, group_id: str, partitions: Mapping[Partition, int]
    ) -> dict[Partition, StateSummary | StateError]:
        """See Persister."""
        del group_id
        return dict.fromkeys(partitions, _SUMMARY)
