"""Which changes a user may make in a cluster."""

from __future__ import annotations

from typing import NamedTuple

from wirebroker.console.changes.change import ConsoleRole
from wirebroker.console.changes.kinds.table import CHANGES


class AllowedChanges(NamedTuple):
    """The changes that a user may make; templates show links only to these.

    Attributes:
        role: The user's role in the cluster.
        is_read_only: The console changes nothing, whatever the role.
    """

    role: ConsoleRole
    is_read_only: bool = False

    def allows(self, name: str) -> bool:
        """Return whether the user may make changes of this kind.

        Raises:
            KeyError: There is no such kind.
        """
        return not self.is_read_only and self.role >= CHANGES[name].role

    @property
    def allows_any(self) -> bool:
        """Whether the user may make changes at all."""
        return not self.is_read_only and self.role >= ConsoleRole.OPERATOR

    @property
    def role_name(self) -> str:
        """The role as a word."""
        return self.role.name.lower()
