"""Three to five nodes that coordinate groups: committed offsets survive faults.

    weather, deaths    as in replica_world.py, for the partitions of __consumer_offsets
    coordinators       the broker's own; replicas notify them of partitions won and lost
    promises           committed offsets never decrease (committed_offsets.py); replicas are equal;
                       each epoch has one leader; in the end each group has a coordinator

Each group has one committing client and no members, so that the order of commits is known. Groups
with members are tested on one broker (test_groups.py) and on clusters of processes.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from tests.simulation.cluster.committed_offsets import CommittedOffsets
from tests.simulation.cluster.offset_clients import Committer, Inquirer
from tests.simulation.cluster.service_world import ServiceWorld
from wirebroker.base.clock import pause
from wirebroker.coordinator.groups.partitions import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from tests.simulation.cluster.coordinating_member import CoordinatingMember

# Java's hash puts two of them into each of two partitions.
GROUPS: Final = ("g0", "g1", "g2", "g3")
_OFFSETS_ID: Final = b"o" * 16
_LOOK_S: Final = 0.1


class CoordinatorWorld(ServiceWorld):
    """One schedule.

    Attributes:
        terms: The number of leader epochs, over all partitions, that were seen to be coordinated.
    """

    topic = CONSUMER_OFFSETS

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.committed = CommittedOffsets()
        self._terms: set[tuple[int, int]] = set()

    def totals(self) -> Counter[str]:
        return super().totals() + Counter({"terms": self.terms})

    @property
    def terms(self) -> int:
        return len(self._terms)

    # -- nodes ---------------------------------------------------------------------------------

    def look_at(self, member: CoordinatingMember) -> None:
        for group, offset in member.held(GROUPS).items():
            epoch = member.epoch_for(group)
            assert epoch is not None, "a loaded partition is led"
            self._terms.add((member.groups.partition_for(group), epoch))
            self.committed.is_held(group, offset, epoch)

    # -- the schedule --------------------------------------------------------------------------

    def _create_topics(self) -> None:
        # The empty topic that groups commit offsets of.
        self.cluster.create_topic((self.random.choice(list(self.node_ids)),))
        self.cluster.create_topic(*self.assignments(), name=CONSUMER_OFFSETS, topic_id=_OFFSETS_ID)

    def _clients(self) -> list[Coroutine[Any, Any, None]]:
        committers = [Committer(self, group).run() for group in GROUPS]
        inquirers = [Inquirer(self, group).run() for group in GROUPS]
        return [*committers, *inquirers, self._look()]

    async def _look(self) -> None:
        """Check all coordinators repeatedly, each soon after it has loaded."""
        while not self.is_over:
            await pause(_LOOK_S)
            for node_id in self.node_ids:
                member = self.member(node_id)
                if member is not None:
                    self.look_at(member)

    # -- the end -------------------------------------------------------------------------------

    async def _calm(self) -> None:
        await super()._calm()
        for group in GROUPS:
            await self._ask_at_rest(Inquirer(self, group))

    async def _ask_at_rest(self, inquirer: Inquirer) -> None:
        for _ in range(100):
            member = await inquirer.coordinator()
            if member is not None:
                task = self.processes[member.node_id].spawn(inquirer.fetch(member))
                await asyncio.wait([task])
                if task.result():
                    return
            await pause(0.2)
        raise AssertionError(f"no broker coordinates {inquirer.group}: {self.answers}")

    def _check_records(self, index: int, values: dict[int, bytes | None]) -> None:
        """Do nothing: the committed offsets were already checked by requests."""
