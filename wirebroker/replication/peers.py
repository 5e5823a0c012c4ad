"""Connections to the other brokers, at the addresses in the metadata.

Source: Kafka's MetadataCache.getAliveBrokerNode, BrokerBlockingSender.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.net.client.node import Node
from wirebroker.net.client.settings import PeerAddress

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from wirebroker.base.clock import Clock
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.net.client.connection import Handshake
    from wirebroker.net.client.settings import ClientSettings
    from wirebroker.net.client.transport import Dialer


class Peers:
    """The brokers that one node connects to."""

    __slots__ = (
        "_clock",
        "_dialer",
        "_handshake",
        "_image",
        "_listener",
        "_random",
        "_settings",
        "_shared",
    )

    def __init__(
        self,
        image: Callable[[], ClusterImage],
        *,
        listener: str,
        dialer: Dialer,
        settings: ClientSettings,
        clock: Clock,
        random: Random,
        handshake: Handshake | None = None,
    ) -> None:
        self._image = image
        self._listener = listener
        self._dialer = dialer
        self._handshake = handshake
        self._settings = settings
        self._clock = clock
        self._random = random
        self._shared: dict[int, Node] = {}

    def address(self, node_id: int) -> PeerAddress | None:
        """Return a broker's address on the listener, if it is registered."""
        broker = self._image().brokers.get(node_id)
        endpoint = None if broker is None else broker.endpoints.get(self._listener)
        return None if endpoint is None else PeerAddress(endpoint.host, endpoint.port)

    def connect(self, node_id: int) -> Node | None:
        """Return a private node for a caller that always has a request in flight."""
        address = self.address(node_id)
        if address is None:
            return None
        return Node(
            address,
            dialer=self._dialer,
            settings=self._settings,
            clock=self._clock,
            random=self._random,
            handshake=self._handshake,
        )

    def find(self, node_id: int) -> Node | None:
        """Return the shared node, for occasional requests, or None if its address is unknown."""
        address = self.address(node_id)
        node = self._shared.get(node_id)
        if node is not None and node.address != address:
            node.abort()
            del self._shared[node_id]
            node = None
        if node is None:
            node = self.connect(node_id)
            if node is not None:
                self._shared[node_id] = node
        return node

    def close(self) -> None:
        """Close the shared nodes."""
        shared, self._shared = self._shared, {}
        for node in shared.values():
            node.abort()
