"""Groups that copy with transactions: rebalances, zombies and their offsets (KIP-447)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.clients.group_copier import CopierHabits, GroupCopier
from tests.simulation.clients.member import AGES, FIRST_STATIC_AGE
from tests.simulation.worlds.transaction_world import TransactionWorld
from tests.simulation.worlds.world import World

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.simulation.clients.member import Habits, Member
    from tests.simulation.machine.loop import Process


class GroupTransactionWorld(TransactionWorld):
    FORMER_ARE_KILLED = 0.2

    def _start_all(self) -> None:
        for group in self._groups:
            for _ in range(self.random.randint(1, 4)):
                self._start_member(group)

    async def _strike_clients(self) -> None:
        await World._strike(self)

    async def _settle(self) -> None:
        for group in self._groups:
            # All others may be leaving.
            self._start_member(group)
        await super()._settle()

    def _tasks(self) -> Iterable[tuple[str, int]]:
        return [
            (group, partition)
            for group in self._groups
            for partition in range(self._partition_count)
        ]

    def _new_member(self, process: Process, group: str, habits: Habits) -> Member:
        assert isinstance(habits, CopierHabits)
        return GroupCopier(
            process,
            self._scene,
            group=group,
            topic_id=self._topic_id,
            partition_count=self._partition_count,
            habits=habits,
        )

    def _new_habits(self) -> Habits:
        random = self.random
        self._number += 1
        is_static = random.random() < 0.6
        return CopierHabits(
            random.choice(AGES[FIRST_STATIC_AGE:]),
            session_timeout_ms=random.choice([3_000, 10_000]),
            rebalance_timeout_ms=random.choice([4_000, 15_000]),
            heartbeat_interval_s=random.choice([0.5, 1.0]),
            protocols=random.choice([("range", "roundrobin"), ("roundrobin", "range")]),
            instance=f"instance{self._number}" if is_static else None,
            transactional_id=random.choice([None, f"id{self._number}"]),
            is_patient=random.random() < 0.5,
        )
