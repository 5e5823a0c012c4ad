"""The interface of a shard for classic groups; the shard itself imports this folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from wirebroker.coordinator.groups.classic.classic_group import ClassicGroup
    from wirebroker.coordinator.groups.group import Group
    from wirebroker.coordinator.groups.settings import GroupSettings
    from wirebroker.coordinator.outcome import Timers


class ClassicShard(Protocol):
    """A shard with groups of any kind."""

    groups: dict[str, Group]
    settings: GroupSettings
    timers: Timers

    def new_uuid(self) -> str:
        """See GroupShard."""
        ...

    def classic(self, group_id: str) -> ClassicGroup | None:
        """See GroupShard."""
