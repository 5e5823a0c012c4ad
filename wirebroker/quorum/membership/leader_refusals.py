"""Decides when the refusals of controllers are final, so that this node must shut down.

A controller that does not lead may have an outdated image, and a leader loads its ACLs when its
term begins. So once this node follows a leader, only that leader's refusals count, and only if they
last for `PATIENCE_S`. A node without rights never learns who leads. So before it follows a leader,
the refusals of all controllers count, if they last for `FIRST_PATIENCE_S` and none of them responds
with anything else.

Source: none. Apache Kafka's broker ends at the first refusal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from wirebroker.net.client.settings import PeerAddress

PATIENCE_S: Final = 10.0
# An ordered restart of a controller and two elections with Kafka's default timeouts.
FIRST_PATIENCE_S: Final = 15.0
# Requests that are refused are repeated sooner; after a longer silence the time begins again.
_LONGEST_PAUSE_S: Final = 3.0


class LeaderRefusals:
    """The refusals since the last useful response; times in seconds."""

    __slots__ = ("_last_s", "_leader", "_since_s")

    def __init__(self) -> None:
        self._leader: PeerAddress | None = None
        self._since_s = 0.0
        self._last_s: float | None = None

    def restart(self) -> None:
        """Begin the time again: a controller responded with anything else."""
        self._last_s = None

    def are_final(
        self, leader: PeerAddress | None, *, heard_s: float | None = None, now_s: float
    ) -> bool:
        """Note a refusal; return whether this node has been refused for too long.

        `leader` is the followed leader that refused, or None before one is known; `heard_s` is when
        a leader last responded to this node, or None.
        """
        is_first = (
            leader != self._leader
            or self._last_s is None
            or now_s - self._last_s > _LONGEST_PAUSE_S
            or (heard_s is not None and heard_s > self._since_s)
        )
        if is_first:
            self._leader, self._since_s = leader, now_s
        self._last_s = now_s
        patience_s = FIRST_PATIENCE_S if leader is None else PATIENCE_S
        return now_s - self._since_s >= patience_s
