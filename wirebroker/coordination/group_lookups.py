"""Clients that look up a group's coordinator and then never use the group.

librdkafka's consumer with `group.protocol=consumer` (KIP-848) does this if the broker does not
advertise ConsumerGroupHeartbeat: librdkafka 2.16 sends FindCoordinator twice on one connection,
then nothing for 10 minutes, and reports no error. Java's consumer fails with a clear message.

Other clients send a request for the group within milliseconds. A librdkafka consumer that only
assigns partitions may not, but it fetches meanwhile. Requests to other nodes are unknown here, so
only groups that this node coordinates are watched.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from wirebroker.request.session import ANSWER_IS_DUE

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.request.session import Session

logger = logging.getLogger(__name__)

# Lookups of one group on one connection.
_SUSPICIOUSLY_OFTEN: Final = 2
# How long the group must then stay unused.
_SILENCE_S: Final = 5.0
# A consumer without need for the group repeats its lookup after 10 minutes.
_WINDOW_S: Final = 60.0
# Watched or logged groups and connections; the oldest are dropped first.
_MOST_KEPT: Final = 1_000
_MOST_CONNECTIONS: Final = 16
# A thousand of the longest ids would take 30 MB.
_LONGEST_ID: Final = 249


class _Lookups:
    """The lookups of one group on one connection."""

    __slots__ = ("asked", "since")

    def __init__(self, since: float) -> None:
        self.asked = 0
        self.since = since


class GroupLookups:
    """Groups that were recently looked up and not used since, with the connections."""

    __slots__ = ("_call_later", "_warned_groups", "_watched")

    def __init__(self, call_later: Callable[[float, Callable[[], None]], object]) -> None:
        self._call_later = call_later
        self._watched: OrderedDict[str, OrderedDict[str, _Lookups]] = OrderedDict()
        # One log line per group and per connection: a client can invent any number of groups.
        self._warned_groups: OrderedDict[tuple[str, str], None] = OrderedDict()

    def add(self, group_id: str, connection: Session, client_id: str | None, now: float) -> None:
        """Record that a client looked up a group's coordinator, at `now` in seconds."""
        if len(group_id) > _LONGEST_ID:
            return
        connections = self._watched.setdefault(group_id, OrderedDict())
        self._watched.move_to_end(group_id)
        lookups = connections.get(connection.id)
        if lookups is None or now - lookups.since > _WINDOW_S:
            lookups = connections[connection.id] = _Lookups(now)
        lookups.asked += 1
        if len(connections) > _MOST_CONNECTIONS:
            connections.popitem(last=False)
        if len(self._watched) > _MOST_KEPT:
            self._watched.popitem(last=False)
        if lookups.asked == _SUSPICIOUSLY_OFTEN:
            self._call_later(
                _SILENCE_S, lambda: self._check(group_id, connection, client_id, lookups)
            )

    def use(self, group_id: str) -> None:
        """Record that a client sent a request for the group."""
        if self._watched:
            self._watched.pop(group_id, None)

    def _check(
        self, group_id: str, connection: Session, client_id: str | None, lookups: _Lookups
    ) -> None:
        connections = self._watched.get(group_id)
        if connections is None or connections.get(connection.id) is not lookups:
            return  # the group was used
        del connections[connection.id]
        # A request in progress means that the client fetches from assigned partitions.
        if not connection.has_ended and not connection.pauses & ANSWER_IS_DUE:
            self._warn(group_id, connection, client_id)

    def _warn(self, group_id: str, connection: Session, client_id: str | None) -> None:
        keys = ("group", group_id), ("connection", connection.id)
        if any(key in self._warned_groups for key in keys):
            return
        self._warned_groups.update(dict.fromkeys(keys))
        while len(self._warned_groups) > _MOST_KEPT:
            self._warned_groups.popitem(last=False)
        logger.warning(
            "group %s: its client %s at %s (%s %s) has looked up the coordinator but does not "
            "join; it probably uses the consumer group protocol (KIP-848), not served yet: set "
            "group.protocol=classic in the client",
            group_id,
            (client_id or "(no client id)")[:_LONGEST_ID],
            connection.peer,
            connection.client_software_name,
            connection.client_software_version,
        )
