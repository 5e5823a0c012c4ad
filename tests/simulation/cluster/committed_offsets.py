"""What groups may rely on, whichever node coordinates them: committed offsets never go back.

A coordinator serves in a leader epoch of its partition. An offset counts from when a commit of it
was answered without error in one epoch, or a fetch with it; from then on no coordinator of that
epoch or of a later one answers with a smaller one, nor holds one: not when it has just loaded, nor
later. Of a coordinator whose epoch is over, and who has not heard of that, as little can be asked
as of Apache Kafka's: it may not know what was committed in later epochs.

Offsets of a group must rise as they are committed: then order in the log is all that matters, and
a commit of which nobody knows whether it was carried out may be seen, or not, but hides none.
"""

from __future__ import annotations

NOTHING = -1


class CommittedOffsets:
    """What has counted so far, by group.

    Attributes:
        commits: How many were answered without error.
        fetches: How many were answered without error.
        held: How often a coordinator's state was looked at.
    """

    def __init__(self) -> None:
        self._asked: dict[str, int] = {}
        # What counts since an epoch, by epoch.
        self._known: dict[str, dict[int, int]] = {}
        self.commits = 0
        self.fetches = 0
        self.held = 0

    def asked(self, group: str, offset: int) -> None:
        """Note that somebody is about to commit an offset."""
        assert offset >= self._asked.get(group, NOTHING), "who commits goes on"
        self._asked[group] = offset

    def least(self, group: str, epoch: int) -> int:
        """Return what a coordinator of an epoch must at least answer with, if asked now."""
        known = self._known.get(group, {})
        return max((known[each] for each in known if each <= epoch), default=NOTHING)

    def committed(self, group: str, offset: int, epoch: int) -> None:
        """Note that a commit was answered without error."""
        self.commits += 1
        self._count(group, offset, epoch)

    def fetched(self, group: str, offset: int, epoch: int, least: int) -> None:
        """Check what a fetch was answered with; `least` is that of when it was asked."""
        self.fetches += 1
        self._check("was answered for", group, offset, epoch, least)
        self._count(group, offset, epoch)

    def is_held(self, group: str, offset: int, epoch: int) -> None:
        """Check what a coordinator that has loaded holds."""
        self.held += 1
        self._check("is held for", group, offset, epoch, self.least(group, epoch))

    def _check(self, what: str, group: str, offset: int, epoch: int, least: int) -> None:
        where = f"in leader epoch {epoch}"
        assert offset >= least, f"{offset} {what} {group} {where}, {least} was committed"
        assert offset <= self._asked.get(group, NOTHING), f"{offset} {what} {group}: who asked?"

    def _count(self, group: str, offset: int, epoch: int) -> None:
        known = self._known.setdefault(group, {})
        known[epoch] = max(offset, known.get(epoch, NOTHING))
