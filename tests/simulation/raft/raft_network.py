"""The simulated network: loses, delays, duplicates and reorders requests and responses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.raft.protocol.events import (
    RequestCancelled,
    RequestReceived,
    ResponseReceived,
)
from wirebroker.coordinator.raft.protocol.messages import RequestFailure

if TYPE_CHECKING:
    from tests.simulation.raft.raft_node import RaftNode
    from tests.simulation.raft.raft_world import RaftWorld
    from wirebroker.coordinator.raft.model.replica_key import Destination
    from wirebroker.coordinator.raft.protocol.messages import RaftRequest


@dataclass(eq=False, slots=True, frozen=True)
class Arrival:
    """A request as it arrived: the token of its response. A repeated one arrives again."""

    sender_id: int
    sender_life: int
    request_id: int
    destination: Destination
    request: RaftRequest


class RaftNetwork:
    def __init__(self, world: RaftWorld) -> None:
        self.world = world
        self.cut: set[tuple[int, int]] = set()  # (from, to): one direction
        self.loss_rate = 0.0
        self.duplicate_rate = 0.0
        self.slow_rate = 0.0

    @property
    def links(self) -> list[tuple[int, int]]:
        """All directed pairs of nodes."""
        ids = self.world.nodes
        return [(a, b) for a in ids for b in ids if a != b]

    def heal(self) -> None:
        self.cut.clear()
        self.loss_rate = self.duplicate_rate = self.slow_rate = 0.0

    def send(self, sender: RaftNode, request_id: int, destination, request) -> None:
        target = int(destination.host.removeprefix("node"))
        for delay_ms in self._delays(sender.node_id, target):
            arrival = Arrival(sender.node_id, sender.life, request_id, destination, request)
            self.world.after(delay_ms, self._arrive, target, arrival)

    def respond(self, sender: RaftNode, token, response) -> None:
        if not isinstance(token, Arrival):
            self.world.administrator.answered(token, response)
            return
        for delay_ms in self._delays(sender.node_id, token.sender_id):
            event = ResponseReceived(token.request_id, token.destination, response)
            self.world.after(delay_ms, self._return, token.sender_id, token.sender_life, event)

    def disconnect(self, node_id: int) -> None:
        """The other nodes may notice that a node has ended."""
        for other in self.world.nodes.values():
            if other.replica is not None and self.world.random.random() < 0.5:
                for token in list(other.core.waiting):
                    if isinstance(token, Arrival) and token.sender_id == node_id:
                        other.handle(RequestCancelled(token))

    def _arrive(self, target: int, arrival: Arrival) -> None:
        node = self.world.nodes[target]
        if node.replica is not None:
            node.handle(RequestReceived(arrival, arrival.request))
        elif self.world.random.random() < 0.5 and (target, arrival.sender_id) not in self.cut:
            # Connection refused, which the sender may learn.
            refusal = RequestFailure(ErrorCode.BROKER_NOT_AVAILABLE)
            event = ResponseReceived(arrival.request_id, arrival.destination, refusal)
            self.world.after(1, self._return, arrival.sender_id, arrival.sender_life, event)

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
