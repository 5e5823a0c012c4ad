"""Decides when the refusals of a leader are final: this node can then no longer follow it.

A controller that does not lead may have an outdated image, and a leader loads its ACLs when its
term begins. So only the followed leader counts, and only if it refuses for `PATIENCE_S`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from wirebroker.net.client.settings import PeerAddress

PATIENCE_S: Final = 10.0
# Requests that are refused are repeated sooner; after a longer silence the time begins again.
_LONGEST_PAUSE_S: Final = 3.0


class LeaderRefusals:
    """The refusals of the followed leader since its last useful response; times in seconds."""

    __slots__ = ("_last_s", "_leader", "_since_s")

    def __init__(self) -> None:
        self._leader: PeerAddress | None = None
        self._since_s = 0.0
        self._last_s = 0.0

    def are_final(self, leader: PeerAddress, *, heard_s: float | None, now_s: float) -> bool:
        """Note a refusal of the followed leader; return whether it has refused for too long.

        `heard_s` is when a leader last responded to this node, or None.
        """
        is_first = (
            leader != self._leader
            or now_s - self._last_s > _LONGEST_PAUSE_S
            or (heard_s is not None and heard_s > self._since_s)
        )
        if is_first:
            self._leader, self._since_s = leader, now_s
        self._last_s = now_s
        return now_s - self._since_s >= PATIENCE_S
