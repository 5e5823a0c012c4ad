"""The secret that salts for nobody are made from: the same on all nodes of a cluster, and kept.

A user's salt is the same wherever it is asked for; a name that nobody has would be told by one that
differs between two brokers, or before and after a restart. What a cluster has in its metadata, and
tells nobody who is not logged in, is the ids of its log directories: 122 bits of chance each, which
stay as long as the directory. Nothing that was made of a password will do: who knows a salt that
was made of it could try passwords by himself (docs/decisions/0018). Where brokers do not tell of
their directories (metadata.version below 3.7) it is made of the cluster's id, which is the same
everywhere as well; but whoever is logged in is told that one (docs/decisions/0019).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.codecs.hashes import digest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from wirebroker.coordinator.controller.image.cluster_image import BrokerImage, ClusterImage


class SaltKey:
    """Finds it."""

    __slots__ = ("_brokers", "_image", "_key", "_of_cluster")

    def __init__(self, image: Callable[[], ClusterImage], cluster_id: str) -> None:
        self._image = image
        # Nothing else is made of the id by these words.
        self._of_cluster = digest("sha256", f"salts for nobody in {cluster_id}".encode())
        self._key = self._of_cluster
        # Those that it was found in: they change seldom.
        self._brokers: Mapping[int, BrokerImage] | None = None

    def find(self) -> bytes:
        """Return it: at least 16 bytes."""
        brokers = self._image().brokers
        if brokers is not self._brokers:
            self._key = _of(brokers) or self._of_cluster
            self._brokers = brokers
        return self._key


def _of(brokers: Mapping[int, BrokerImage]) -> bytes | None:
    """Return the directory of the lowest id of the first broker that tells of any."""
    for node_id in sorted(brokers):
        directories = brokers[node_id].log_directories
        if directories:
            return min(directories)
    return None
