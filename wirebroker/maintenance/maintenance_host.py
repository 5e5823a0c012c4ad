"""The interface of the broker for periodic duties."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from wirebroker.base.clock import Clock
    from wirebroker.config import Config
    from wirebroker.replica.replica_manager import ReplicaManager


class MaintenanceHost(Protocol):
    """A broker with periodic duties."""

    @property
    def config(self) -> Config:
        """The current configs."""
        ...

    @property
    def clock(self) -> Clock:
        """The clock."""
        ...

    @property
    def replicas(self) -> ReplicaManager:
        """All partitions of this node."""
        ...
