"""A check that committed offsets of groups never decrease, whichever node coordinates them.

An offset counts once a commit or fetch of it has succeeded in a leader epoch of the group's
partition. From then on, no coordinator of that or a later epoch may return or hold a smaller one.
As in Apache Kafka, a coordinator that does not yet know that its epoch is over may miss commits of
later epochs.

The offsets that a group commits must rise. Then only the order in the log matters, and a commit
with an unknown result may become visible but hides no other.
"""

from __future__ import annotations

NOTHING = -1


class CommittedOffsets:
    """The offsets that count so far, by group.

    Attributes:
        commits: The number of successful commits.
        fetches: The number of successful fetches.
        held: The number of checks of a coordinator's state.
    """

    def __init__(self) -> None:
        self._asked: dict[str, int] = {}
        # By group: the highest offset that counts in each epoch.
        self._known: dict[str, dict[int, int]] = {}
        self.commits = 0
        self.fetches = 0
        self.held = 0

    def asked(self, group: str, offset: int) -> None:
        """Note that a client is about to commit an offset."""
        assert offset >= self._asked.get(group, NOTHING), "who commits goes on"
        self._asked[group] = offset

    def least(self, group: str, epoch: int) -> int:
        """Return the smallest offset that a coordinator of an epoch may return now."""
        known = self._known.get(group, {})
        return max((known[each] for each in known if each <= epoch), default=NOTHING)

    def committed(self, group: str, offset: int, epoch: int) -> None:
        self.commits += 1
        self._count(group, offset, epoch)

    def fetched(self, group: str, offset: int, epoch: int, least: int) -> None:
        """Check a fetched offset; `least` is the minimum at the time of the request."""
        self.fetches += 1
        self._check("was answered for", group, offset, epoch, least)
        self._count(group, offset, epoch)

    def is_held(self, group: str, offset: int, epoch: int) -> None:
        self.held += 1
        self._check("is held for", group, offset, epoch, self.least(group, epoch))

    def _check(self, what: str, group: str, offset: int, epoch: int, least: int) -> None:
        where = f"in leader epoch {epoch}"
        assert offset >= least, f"{offset} {what} {group} {where}, {least} was committed"
        assert offset <= self._asked.get(group, NOTHING), f"{offset} {what} {group}: who asked?"

    def _count(self, group: str, offset: int, epoch: int) -> None:
        known = self._known.setdefault(group, {})
        known[epoch] = max(offset, known.get(epoch, NOTHING))
