"""Steps by which members of consumer, share and streams groups come and go."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any

from compat_tests.lockstep.topics import Topics

if TYPE_CHECKING:
    from compat_tests.lockstep.kind import Moves, StepsWithResult


class ChangingMembers(Topics):
    """What does not depend on the kind.

    Attributes:
        groups: The groups, whose class depends on the kind.
    """

    groups: list[Any]

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._made = 0

    @abc.abstractmethod
    def _most_members(self, group: Any) -> int:
        """Return the largest number of members of a group."""

    @abc.abstractmethod
    def _new_member(self, group: Any) -> Any:
        """Return a member that has not joined yet."""

    @abc.abstractmethod
    def _send_join(self, group: Any, member: Any) -> StepsWithResult[bool]:
        """Join, or join again; return whether the member is one now."""

    @abc.abstractmethod
    def _send_leave(self, group: Any, member: Any) -> StepsWithResult[bool]:
        """Leave; return whether the member has left."""

    def join(self) -> Moves:
        """Add a member, or remove one from a full group."""
        group = self._group()
        if len(group.members) >= self._most_members(group):
            yield from self.leave()
            return
        member = self._new_member(group)
        if (yield from self._send_join(group, member)):
            group.members.append(member)

    def join_again(self) -> Moves:
        """Let a member abandon its assignment and join with the same id, as after an error."""
        group, member = self._any_member()
        if member is not None:
            yield from self._send_join(group, member)

    def leave(self) -> Moves:
        group, member = self._any_member()
        if member is not None and (yield from self._send_leave(group, member)):
            group.members.remove(member)

    def _group(self) -> Any:
        return self.random.choice(self.groups)

    def _any_member(self) -> tuple[Any, Any]:
        """Return a group, and one of its members or None."""
        group = self._group()
        return group, self.random.choice(group.members) if group.members else None
