"""The simulated network: loses, delays, duplicates and reorders requests and responses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.raft.protocol.events import RequestReceived, ResponseReceived
from wirebroker.coordinator.raft.protocol.messages import RequestFailure

if TYPE_CHECKING:
    from tests.simulation.raft.raft_node import RaftNode
    from tests.simulation.raft.raft_world import RaftWorld


class RaftNetwork:
    def __init__(self, world: RaftWorld) -> None:
        self.world = world
        self.cut: set[tuple[int, int]] = set()  # (from, to): one direction
        self.loss_rate = 0.0
        self.duplicate_rate = 0.0
        self.slow_rate = 0.0

    def heal(self) -> None:
        self.cut.clear()
        self.loss_rate = self.duplicate_rate = self.slow_rate = 0.0

    def send(self, sender: RaftNode, request_id: int, destination, request) -> None:
        target = int(destination.host.removeprefix("node"))
        token = (sender.node_id, sender.life, request_id, destination)
        for delay_ms in self._delays(sender.node_id, target):
            self.world.after(delay_ms, self._arrive, target, token, request)

    def respond(self, sender: RaftNode, token, response) -> None:
        if token[0] == "administrator":
            self.world.administrator.answered(token, response)
            return
        target, life, request_id, destination = token
        for delay_ms in self._delays(sender.node_id, target):
            event = ResponseReceived(request_id, destination, response)
            self.world.after(delay_ms, self._return, target, life, event)

    def _arrive(self, target: int, token, request) -> None:
        node = self.world.nodes[target]
        sender, life, request_id, destination = token
        if node.replica is None:
            # Connection refused, which the sender may learn.
            if self.world.random.random() < 0.5 and (target, sender) not in self.cut:
                refusal = RequestFailure(ErrorCode.BROKER_NOT_AVAILABLE)
                event = ResponseReceived(request_id, destination, refusal)
                self.world.after(1, self._return, sender, life, event)
            return
        node.handle(RequestReceived(token, request))

    def _return(self, target: int, life: int, event: ResponseReceived) -> None:
        node = self.world.nodes[target]
        if node.life == life:
            node.handle(event)

    def _delays(self, source: int, target: int) -> list[int]:
        random = self.world.random
        if (source, target) in self.cut or random.random() < self.loss_rate:
            return []
        copies = 2 if random.random() < self.duplicate_rate else 1
        return [
            random.randint(1, 3_000) if random.random() < self.slow_rate else random.randint(1, 10)
            for _ in range(copies)
        ]
