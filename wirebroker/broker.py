"""What a handler is given: this node's parts, built and ordered by server.py.

Handlers read the committed metadata at `metadata.image`, change it through `metadata.submit`, and
reach logs through `replicas`. Nothing else is shared between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wirebroker.api.auto_creation import AutoCreation
    from wirebroker.api.fetch_sessions import FetchSessions
    from wirebroker.api.metadata_cache import MetadataCache
    from wirebroker.clock import Clock
    from wirebroker.cluster.metadata_log import MetadataLog
    from wirebroker.cluster.replica_manager import ReplicaManager
    from wirebroker.config import Config
    from wirebroker.coordinator.controller import Controller
    from wirebroker.coordinator.producer_ids import ProducerIds


@dataclass(slots=True)
class Broker:
    """One node, as its handlers see it."""

    config: Config
    clock: Clock
    node_id: int
    cluster_id: str
    metadata: MetadataLog
    controller: Controller
    replicas: ReplicaManager
    producer_ids: ProducerIds
    fetch_sessions: FetchSessions
    metadata_cache: MetadataCache
    auto_creation: AutoCreation
    # Listeners whose clients are told the address that they reached us at.
    auto_listeners: frozenset[str]
