"""The sessions of brokers: recent heartbeats, and how far each broker follows the metadata.

Each session has a timer, which repeats until a silent broker is fenced. The broker in the
controller's process needs no session, since it stops with the controller.

Source: Kafka's BrokerHeartbeatManager.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from wirebroker.coordinator.outcome import Timers

if TYPE_CHECKING:
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage

# Delay before the next attempt to fence a broker.
_AGAIN_MS: Final = 1_000


@dataclass(slots=True)
class _Session:
    broker_epoch: int
    ends_at_ms: float  # monotonic; infinite for the controller's own broker
    metadata_offset: int = -1  # the last that it has applied
    # Offset of its controlled shutdown, which the others must apply first.
    shutdown_offset: int | None = None


class BrokerSessions:
    """The sessions of all brokers.

    Attributes:
        timers: Ends of sessions; events are broker ids.
    """

    __slots__ = ("_own_node_id", "_session_ms", "_sessions", "timers")

    def __init__(self, *, own_node_id: int, session_ms: int) -> None:
        self._own_node_id = own_node_id
        self._session_ms = session_ms
        self._sessions: dict[int, _Session] = {}
        self.timers = Timers()

    def begin(self, image: ClusterImage, now_ms: int) -> None:
        """Begin a term: every serving broker gets a session."""
        self._sessions = {}
        self.timers = Timers()
        for broker in image.brokers.values():
            if not broker.fenced and broker.node_id != self._own_node_id:
                self.touch(broker.node_id, broker.epoch, now_ms)

    def is_valid(self, node_id: int, broker_epoch: int, now_ms: int) -> bool:
        """Return whether this incarnation has a current session."""
        session = self._sessions.get(node_id)
        return (
            session is not None
            and session.broker_epoch == broker_epoch
            and now_ms < session.ends_at_ms
        )

    def touch(
        self, node_id: int, broker_epoch: int, now_ms: int, *, metadata_offset: int = -1
    ) -> None:
        """Extend a broker's session."""
        session = self._sessions.get(node_id)
        if session is None or session.broker_epoch != broker_epoch:
            session = self._sessions[node_id] = _Session(broker_epoch, math.inf)
        session.metadata_offset = max(session.metadata_offset, metadata_offset)
        if node_id != self._own_node_id:
            session.ends_at_ms = now_ms + self._session_ms
            self.timers.set(node_id, now_ms + self._session_ms, node_id)

    def is_silent(self, node_id: int, image: ClusterImage, now_ms: int) -> bool:
        """Return whether a serving broker's session is over."""
        session = self._sessions.get(node_id)
        broker = image.brokers.get(node_id)
        return (
            session is not None
            and session.ends_at_ms <= now_ms
            and broker is not None
            and not broker.fenced
        )

    def look_at(self, node_id: int, image: ClusterImage, now_ms: int) -> bool:
        """Handle a session's timer: return whether to fence the broker, else end the session."""
        if self.is_silent(node_id, image, now_ms):
            self.timers.set(node_id, now_ms + _AGAIN_MS, node_id)
            return True
        self._sessions.pop(node_id, None)
        return False

    def stopping(self, node_id: int, offset: int) -> None:
        """Note the offset of a broker's controlled shutdown, if not noted before."""
        session = self._sessions[node_id]
        if session.shutdown_offset is None:
            session.shutdown_offset = offset

    def may_stop(self, node_id: int, image: ClusterImage) -> bool:
        """Return whether all serving brokers know that this one leads nothing.

        The controller's own broker does: it applies committed records before responses leave.
        """
        session = self._sessions.get(node_id)
        if session is None or session.shutdown_offset is None:
            return True
        return all(
            other.metadata_offset >= session.shutdown_offset
            for other_id, other in self._sessions.items()
            if other_id not in {node_id, self._own_node_id}
            and (broker := image.brokers.get(other_id)) is not None
            and broker.is_active
        )
