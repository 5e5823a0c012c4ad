"""The records that the controllers of a simulation append while they lead."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.simulation.raft.raft_world import RaftWorld


class RaftClients:
    """Proposals at leaders; `last_payload` is the number of the last one."""

    def __init__(self, world: RaftWorld) -> None:
        self.world = world
        self.last_payload = 0

    def propose(self) -> None:
        """Append a record at some leader, and later another one."""
        if self.world.faults.is_over:
            return
        leaders = [node for node in self.world.nodes.values() if node.leads]
        if leaders:
            self.last_payload += 1
            node = self.world.random.choice(leaders)
            node.append(self.last_payload, self.world.random.randint(1, 3))
        self.world.after(self.world.random.randint(5, 300), self.propose)

    def propose_at_idle_leaders(self) -> None:
        for node in self.world.nodes.values():
            if node.leads and not node.pending:
                self.last_payload += 1
                node.append(self.last_payload, 1)
