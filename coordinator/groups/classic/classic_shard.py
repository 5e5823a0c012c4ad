"""The interface of a shard that the operations of classic groups use.

The shard itself (shard/shard.py) imports this folder, so it cannot be named here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from wirebroker.coordinator.groups.classic.classic_group import ClassicGroup
    from wirebroker.coordinator.groups.group import Group
    from wirebroker.coordinator.groups.settings import GroupSettings
    from wirebroker.coordinator.outcome import Timers


class ClassicShard(Protocol):
    """The groups of one partition, their settings and their timers."""

    groups: dict[str, Group]
    settings: GroupSettings
    timers: Timers

    def new_uuid(self) -> str:
        """Return a new id of a member."""
        ...

    def classic(self, group_id: str) -> ClassicGroup | None:
        """Return a classic group; None if there is none, or one of another kind."""
