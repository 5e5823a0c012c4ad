"""The secret for salts of unknown users: constant, and the same on all nodes of a cluster.

A salt that differs between brokers or after a restart would reveal an unknown name. The key is the
id of a log directory: 122 random bits that stay as long as the directory and that only
authenticated clients see. A key derived from a password would help to guess it
(docs/decisions/0018). Below metadata.version 3.7, without registered directories, the key is
derived from the cluster id, which is less secret (docs/decisions/0019).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.codecs.hashes import digest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from wirebroker.coordinator.controller.image.cluster_image import BrokerImage, ClusterImage


class SaltKey:
    """Finds the key."""

    __slots__ = ("_brokers", "_image", "_key", "_of_cluster")

    def __init__(self, image: Callable[[], ClusterImage], cluster_id: str) -> None:
        self._image = image
        # A prefix that nothing else uses.
        self._of_cluster = digest("sha256", f"salts for nobody in {cluster_id}".encode())
        self._key = self._of_cluster
        # The brokers for which _key was found; they change rarely.
        self._brokers: Mapping[int, BrokerImage] | None = None

    def find(self) -> bytes:
        """Return the key: at least 16 bytes."""
        brokers = self._image().brokers
        if brokers is not self._brokers:
            self._key = _of(brokers) or self._of_cluster
            self._brokers = brokers
        return self._key


def _of(brokers: Mapping[int, BrokerImage]) -> bytes | None:
    """Return the lowest directory id of the first broker that has any."""
    for node_id in sorted(brokers):
        directories = brokers[node_id].log_directories
        if directories:
            return min(directories)
    return None
