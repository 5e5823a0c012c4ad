"""Which brokers the controller has heard of lately, and how far each has followed the metadata.

Soft state: no record says it, and a controller that begins to lead gives every broker that serves
a whole session from then on. Each session has a timer, whose event is the broker's id; one whose
broker has to be fenced is looked at again until it is.

The broker in the controller's own process needs no session: it lives as long as the controller
does. Until it registers, what the metadata says of it is about an incarnation that has died.

Source: Kafka's BrokerHeartbeatManager.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from wirebroker.coordinator.outcome import Timers

if TYPE_CHECKING:
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage

# Until a broker that could not be fenced is tried again.
_AGAIN_MS: Final = 1_000


@dataclass(slots=True)
class _Session:
    broker_epoch: int
    ends_at_ms: float  # on the monotonic clock; infinite for the controller's own broker
    metadata_offset: int = -1  # the last that it has followed
    # The offset of its controlled shutdown, which the others shall have followed first.
    shutdown_offset: int | None = None


class BrokerSessions:
    """The sessions of all brokers.

    Attributes:
        timers: When to look at a session; events are ids of brokers.
    """

    __slots__ = ("_own_node_id", "_session_ms", "_sessions", "timers")

    def __init__(self, *, own_node_id: int, session_ms: int) -> None:
        self._own_node_id = own_node_id
        self._session_ms = session_ms
        self._sessions: dict[int, _Session] = {}
        self.timers = Timers()

    def begin(self, image: ClusterImage, now_ms: int) -> None:
        """Begin to lead: every broker that serves has a session from now on."""
        self._sessions = {}
        self.timers = Timers()
        for each in image.brokers.values():
            if not each.fenced and each.node_id != self._own_node_id:
                self.touch(each.node_id, each.epoch, now_ms)

    def is_valid(self, node_id: int, broker_epoch: int, now_ms: int) -> bool:
        """Tell whether this incarnation was heard of lately."""
        session = self._sessions.get(node_id)
        return (
            session is not None
            and session.broker_epoch == broker_epoch
            and now_ms < session.ends_at_ms
        )

    def touch(
        self, node_id: int, broker_epoch: int, now_ms: int, *, metadata_offset: int = -1
    ) -> None:
        """Note that a broker was heard of."""
        session = self._sessions.get(node_id)
        if session is None or session.broker_epoch != broker_epoch:
            session = self._sessions[node_id] = _Session(broker_epoch, math.inf)
        session.metadata_offset = max(session.metadata_offset, metadata_offset)
        if node_id != self._own_node_id:
            session.ends_at_ms = now_ms + self._session_ms
            self.timers.set(node_id, now_ms + self._session_ms, node_id)

    def is_silent(self, node_id: int, image: ClusterImage, now_ms: int) -> bool:
        """Tell whether a broker serves though it was not heard of for too long."""
        session = self._sessions.get(node_id)
        broker = image.brokers.get(node_id)
        return (
            session is not None
            and session.ends_at_ms <= now_ms
            and broker is not None
            and not broker.fenced
        )

    def look_at(self, node_id: int, image: ClusterImage, now_ms: int) -> bool:
        """Look at a session whose timer has come; return whether its broker has to be fenced.

        A session that is over is forgotten, unless that is still to be done.
        """
        if self.is_silent(node_id, image, now_ms):
            self.timers.set(node_id, now_ms + _AGAIN_MS, node_id)
            return True
        self._sessions.pop(node_id, None)
        return False

    def stopping(self, node_id: int, offset: int) -> None:
        """Note at which offset a broker's controlled shutdown stands, if not noted before."""
        session = self._sessions[node_id]
        if session.shutdown_offset is None:
            session.shutdown_offset = offset

    def may_stop(self, node_id: int, image: ClusterImage) -> bool:
        """Tell whether all brokers that serve know that this one leads nothing any more.

        The controller's own broker does: it follows what is committed before anybody is answered.
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
