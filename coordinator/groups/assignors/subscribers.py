"""Members by subscription, and subscribers by topic.

Members of a group usually have few different subscriptions. So the members are first grouped by
subscription, and topics with the same subscribers share one list.
"""

from __future__ import annotations

from itertools import chain, compress, islice
from typing import TYPE_CHECKING, Final

from wirebroker.coordinator.groups.assignors.assignor import WORK_PER_STEP
from wirebroker.coordinator.groups.assignors.in_steps import cleared_in_steps

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from wirebroker.base.clock import Steps
    from wirebroker.coordinator.groups.assignors.assignor import SubscribedMember

_DIGIT_VALUES: Final = bytes.maketrans(b"01", b"\x00\x01")


def members_by_subscription(
    members: Sequence[SubscribedMember],
) -> Steps[dict[frozenset[bytes], list[int]]]:
    """Return the ascending positions of the members with each subscription."""
    positions: dict[frozenset[bytes], list[int]] = {}
    work = 0
    for position, member in enumerate(members):
        positions.setdefault(member.topic_ids, []).append(position)
        # Equal sets that are different objects are compared element by element.
        work += 1 + len(member.topic_ids) // 8
        if work >= WORK_PER_STEP:
            work = 0
            yield
    return positions


class Subscribers:
    """The subscribers of each topic."""

    __slots__ = ("_masks", "_positions")

    # _masks: the subscriptions that contain each topic: bit n is set for the n-th one. Integers are
    #     small, and the cycle collector ignores them.
    # _positions: the ascending positions of the members, by mask.

    def __init__(self) -> None:
        self._masks: dict[bytes, int] = {}
        self._positions: dict[int, list[int]] = {}

    @property
    def topic_ids(self) -> Collection[bytes]:
        """The topics with subscribers, in no order."""
        return self._masks.keys()

    def of(self, topic_id: bytes) -> Sequence[int]:
        """Return the ascending positions of a topic's subscribers among the members."""
        return self._positions[self._masks[topic_id]]

    def find(self, by_subscription: Mapping[frozenset[bytes], list[int]]) -> Steps[None]:
        """Find the subscribers, from the positions of the members with each subscription."""
        yield from self._find_masks(by_subscription)
        groups = list(by_subscription.values())
        work = 0
        for mask in self._masks.values():
            if mask not in self._positions:
                positions = sorted(chain.from_iterable(_selected(groups, mask)))
                self._positions[mask] = positions
                work += (len(groups) + len(positions)) // 8
            work += 1
            if work >= WORK_PER_STEP:
                work = 0
                yield

    def _find_masks(self, subscriptions: Iterable[frozenset[bytes]]) -> Steps[None]:
        bit = 1
        work = 0
        for topic_ids in subscriptions:
            remaining = iter(topic_ids)
            while chunk := tuple(islice(remaining, WORK_PER_STEP)):
                for topic_id in chunk:
                    self._masks[topic_id] = self._masks.get(topic_id, 0) | bit
                work += len(chunk)
                if work >= WORK_PER_STEP:
                    work = 0
                    yield
            bit <<= 1

    def release(self) -> Steps[None]:
        """Release what this object holds."""
        yield from cleared_in_steps(self._masks)
        yield from cleared_in_steps(self._positions)


def _selected(groups: list[list[int]], mask: int) -> Iterable[list[int]]:
    """Return the groups whose bits are set."""
    digits = f"{mask:b}"[::-1].encode()
    return compress(groups, digits.translate(_DIGIT_VALUES))
