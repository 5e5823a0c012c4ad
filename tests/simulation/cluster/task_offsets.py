"""A check that offsets of streams groups change only by commits of the owners of tasks.

An offset counts once its commit has succeeded in a leader epoch of the group's partition. From then
on, no coordinator of that or a later epoch may hold a smaller one, or one that no owner committed:
each owner goes on from the committed offset, and former owners are refused.
"""

from __future__ import annotations

NOTHING = -1
Partition = tuple[str, int]


class TaskOffsets:
    """The offsets of all groups, by group and partition.

    Attributes:
        commits: The number of successful commits.
        held: The number of checks of a coordinator's state.
    """

    def __init__(self) -> None:
        self._asked: dict[Partition, set[int]] = {}
        self._known: dict[Partition, dict[int, int]] = {}
        self.commits = 0
        self.held = 0

    def asked(self, group: str, partition: int, offset: int) -> None:
        """Note that an owner is about to commit an offset."""
        self._asked.setdefault((group, partition), {NOTHING}).add(offset)

    def committed(self, group: str, partition: int, offset: int, epoch: int) -> None:
        """Note a successful commit."""
        self.commits += 1
        known = self._known.setdefault((group, partition), {})
        known[epoch] = max(offset, known.get(epoch, NOTHING))

    def is_held(self, group: str, partition: int, offset: int, epoch: int) -> None:
        """Check the offset that the coordinator of an epoch holds."""
        self.held += 1
        known = self._known.get((group, partition), {})
        least = max((known[each] for each in known if each <= epoch), default=NOTHING)
        name = f"{partition} of {group} in leader epoch {epoch}"
        assert offset >= least, f"the offset of {name} goes back: {offset}, {least} was committed"
        asked = self._asked.get((group, partition), {NOTHING})
        assert offset in asked, f"the offset of {name} is {offset}, which no owner committed"
