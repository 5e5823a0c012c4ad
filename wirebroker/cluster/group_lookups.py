"""Clients that look for a group's coordinator again and again and then never use it.

That is all there is to see of a consumer with `group.protocol=consumer` (KIP-848) whose broker
doesn't advertise ConsumerGroupHeartbeat: librdkafka asks FindCoordinator about once a second, for
ever, on one connection, and tells its application nothing; Java's fails after the first, with a
clear message of its own. Tried with librdkafka 2.16 and Java's 4.3.1 client.

A request about the group, from anybody, takes the suspicion back: admin clients and exporters of
lag look for coordinators in a loop too. So only groups count that this node coordinates: requests
to another one are not seen here, and while that one fails every client looks again and again.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from wirebroker.session import Session

logger = logging.getLogger(__name__)

# Three within a minute: clients of the classic protocol look again after minutes, or join between.
_SUSPICIOUSLY_OFTEN: Final = 3
_WINDOW_S: Final = 60.0
# Groups that are watched, and groups and connections of which it was said; the oldest go first.
_MOST_KEPT: Final = 1_000
# Groups with longer ids are not watched: a thousand of the longest would hold 30 MB.
_LONGEST_ID: Final = 249


class _Lookups(NamedTuple):
    connection_id: str
    asked: int
    since: float


class GroupLookups:
    """The groups that were looked up lately and not used since, each with its last asker."""

    __slots__ = ("_said_of", "_watched")

    def __init__(self) -> None:
        self._watched: OrderedDict[str, _Lookups] = OrderedDict()
        # One line for each group, and no connection makes two: it might have made up the groups.
        self._said_of: OrderedDict[tuple[str, str], None] = OrderedDict()

    def add(self, group_id: str, connection: Session, now: float) -> None:
        """Note that a client was told the coordinator of a group, at `now` in seconds."""
        if len(group_id) > _LONGEST_ID:
            return
        before = self._watched.pop(group_id, None)
        if (
            before is None
            or before.connection_id != connection.id
            or now - before.since > _WINDOW_S
        ):
            before = _Lookups(connection.id, 0, now)
        looked = self._watched[group_id] = before._replace(asked=before.asked + 1)
        if len(self._watched) > _MOST_KEPT:
            self._watched.popitem(last=False)
        if looked.asked >= _SUSPICIOUSLY_OFTEN:
            self._say(group_id, connection)

    def use(self, group_id: str) -> None:
        """Note that somebody asked something of the group."""
        if self._watched:
            self._watched.pop(group_id, None)

    def _say(self, group_id: str, connection: Session) -> None:
        keys = ("group", group_id), ("connection", connection.id)
        if any(key in self._said_of for key in keys):
            return
        self._said_of.update(dict.fromkeys(keys))
        while len(self._said_of) > _MOST_KEPT:
            self._said_of.popitem(last=False)
        logger.warning(
            "group %s: its client at %s (%s %s) keeps looking for the coordinator without joining; "
            "it seems to want the newer group protocol (KIP-848), not served yet: let it set "
            "group.protocol=classic",
            group_id,
            connection.peer,
            connection.client_software_name,
            connection.client_software_version,
        )
