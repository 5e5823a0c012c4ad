"""Writes of `quorum-state` that a later one in the same step replaces.

The only voter begins an epoch in one step: candidate, then leader. Nothing depends on the first
state, so only the last one is written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.coordinator.raft.protocol.actions import (
    HighWatermarkAdvanced,
    LeaderChanged,
    Persist,
    VotersChanged,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.coordinator.raft.protocol.actions import RaftAction

# Actions that neither leave this process nor change the disk.
_INTERNAL = (HighWatermarkAdvanced, LeaderChanged, VotersChanged)


def needed(actions: Sequence[RaftAction]) -> list[RaftAction]:
    """Return the actions without each Persist that another one follows before any effect."""
    kept: list[RaftAction] = []
    is_superseded = False
    for action in reversed(actions):
        if isinstance(action, Persist):
            if not is_superseded:
                kept.append(action)
            is_superseded = True
            continue
        is_superseded = is_superseded and isinstance(action, _INTERNAL)
        kept.append(action)
    return kept[::-1]
