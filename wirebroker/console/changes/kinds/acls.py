"""Changes of ACLs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from wirebroker.console.changes.change import ChangeKind

KINDS: Final[tuple[ChangeKind, ...]] = ()
