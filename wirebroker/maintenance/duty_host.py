"""What periodic duties see of their broker: where it stands above them, they need not know it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from wirebroker.base.clock import Clock
    from wirebroker.config import Config
    from wirebroker.replica.replica_manager import ReplicaManager


class DutyHost(Protocol):
    """Whose logs are looked after."""

    @property
    def config(self) -> Config:
        """The configs in force, read anew each time."""
        ...

    @property
    def clock(self) -> Clock:
        """The time."""
        ...

    @property
    def replicas(self) -> ReplicaManager:
        """All partitions of this node."""
        ...
