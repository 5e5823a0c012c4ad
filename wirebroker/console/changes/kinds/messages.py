"""Records that are produced, sent again and copied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from wirebroker.console.changes.change import ChangeKind

KINDS: Final[tuple[ChangeKind, ...]] = ()
