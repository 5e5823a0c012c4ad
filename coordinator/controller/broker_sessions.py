"""Which brokers the controller has heard of lately, and how far each has followed the metadata.

Soft state: no record says it, and a controller that begins to lead gives every broker that serves
a whole session from then on.

The broker in the controller's own process needs no session: it lives as long as the controller
does. Until it registers, what the metadata says of it is about an incarnation that has died.

Source: Kafka's BrokerHeartbeatManager.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wirebroker.coordinator.controller.cluster_image import ClusterImage


@dataclass(slots=True)
class _Session:
    broker_epoch: int
    ends_at_s: float  # on the monotonic clock
    metadata_offset: int = -1  # the last that it has followed
    # The offset of its controlled shutdown, which the others shall have followed first.
    shutdown_offset: int | None = None


class BrokerSessions:
    """The sessions of all brokers."""

    __slots__ = ("_own_node_id", "_session_s", "_sessions")

    def __init__(self, *, own_node_id: int, session_s: float) -> None:
        self._own_node_id = own_node_id
        self._session_s = session_s
        self._sessions: dict[int, _Session] = {}

    def begin(self, image: ClusterImage, now_s: float) -> None:
        """Begin to lead: every broker that serves has a session from now on."""
        self._sessions = {
            each.node_id: _Session(each.epoch, now_s + self._session_s)
            for each in image.brokers.values()
            if not each.fenced and each.node_id != self._own_node_id
        }

    def is_valid(self, node_id: int, broker_epoch: int, now_s: float) -> bool:
        """Tell whether this incarnation was heard of lately."""
        session = self._sessions.get(node_id)
        return (
            session is not None
            and session.broker_epoch == broker_epoch
            and now_s < session.ends_at_s
        )

    def touch(
        self, node_id: int, broker_epoch: int, now_s: float, *, metadata_offset: int = -1
    ) -> None:
        """Note that a broker was heard of."""
        session = self._sessions.get(node_id)
        if session is None or session.broker_epoch != broker_epoch:
            session = self._sessions[node_id] = _Session(broker_epoch, 0.0)
        is_own = node_id == self._own_node_id
        session.ends_at_s = math.inf if is_own else now_s + self._session_s
        session.metadata_offset = max(session.metadata_offset, metadata_offset)

    def expired(self, image: ClusterImage, now_s: float) -> list[int]:
        """Return the brokers that serve though they were not heard of for too long."""
        return [
            node_id
            for node_id, session in self._sessions.items()
            if session.ends_at_s <= now_s
            and (broker := image.brokers.get(node_id)) is not None
            and not broker.fenced
        ]

    def drop_ended(self, image: ClusterImage, now_s: float) -> None:
        """Forget sessions that are over, unless their brokers still have to be fenced."""
        expired = self.expired(image, now_s)
        self._sessions = {
            node_id: each
            for node_id, each in self._sessions.items()
            if each.ends_at_s > now_s or node_id in expired
        }

    def next_end_s(self) -> float:
        """Return when the next session ends unless its broker is heard of; infinite if none."""
        return min((each.ends_at_s for each in self._sessions.values()), default=math.inf)

    def stopping(self, node_id: int, offset: int) -> None:
        """Note at which offset a broker's controlled shutdown stands, if not noted before."""
        session = self._sessions[node_id]
        if session.shutdown_offset is None:
            session.shutdown_offset = offset

    def may_stop(self, node_id: int, image: ClusterImage) -> bool:
        """Tell whether all brokers that serve know that this one leads nothing any more."""
        session = self._sessions.get(node_id)
        if session is None or session.shutdown_offset is None:
            return True
        return all(
            other.metadata_offset >= session.shutdown_offset
            for other_id, other in self._sessions.items()
            if other_id != node_id
            and (broker := image.brokers.get(other_id)) is not None
            and broker.is_active
        )
