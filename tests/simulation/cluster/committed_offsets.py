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
        offsets_by_epoch = self._known.get(group, {})
        return max(
            (
                offsets_by_epoch[known_epoch]
                for known_epoch in offsets_by_epoch
                if known_epoch <= epoch
            ),
            default=NOTHING,
        )

    def committed(self, group: str, offset: int, epoch: int) -> None:
        self.commits += 1
        self._count(group, offset, epoch)

    def fetched(self, group: str, offset: int, epoch: int, minimum: int) -> None:
        """Check a fetched offset; `minimum` is the bound at the time of the request."""
        self.fetches += 1
        self._check("was answered for", group, offset, epoch, minimum)
        self._count(group, offset, epoch)

    def is_held(self, group: str, offset: int, epoch: int) -> None:
        self.held += 1
        self._check("is held for", group, offset, epoch, self.least(group, epoch))

    def _check(self, action: str, group: str, offset: int, epoch: int, minimum: int) -> None:
        context = f"in leader epoch {epoch}"
        assert offset >= minimum, f"{offset} {action} {group} {context}, {minimum} was committed"
        assert offset <= self._asked.get(group, NOTHING), f"{offset} {action} {group}: who asked?"

    def _count(self, group: str, offset: int, epoch: int) -> None:
        offsets_by_epoch = self._known.setdefault(group, {})
        offsets_by_epoch[epoch] = max(offset, offsets_by_epoch.get(epoch, NOTHING))
