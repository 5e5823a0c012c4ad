"""The addresses of simulated replicas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.codecs.records.control import VoterEndpoint
from wirebroker.coordinator.raft.model.replica_key import Destination

if TYPE_CHECKING:
    from collections.abc import Iterable

LISTENER = "CONTROLLER"


def endpoints_of(node_id: int) -> tuple[VoterEndpoint, ...]:
    return (VoterEndpoint(LISTENER, f"node{node_id}", 9093),)


def bootstrap_of(node_ids: Iterable[int]) -> list[Destination]:
    return [Destination(-2 - i, f"node{node_id}", 9093) for i, node_id in enumerate(node_ids)]
