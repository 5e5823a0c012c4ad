"""Reads the newest image of a cluster from its controllers, without keeping it.

Source: an observer without a node id (KIP-595), like Kafka's metadata shell.
"""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING, Final

from wirebroker.config.listeners.listeners import to_controllers
from wirebroker.config.rows.row import StartError
from wirebroker.coordinator.raft.model.replica_key import ReplicaKey
from wirebroker.quorum.image.metadata_follower import MetadataFollower
from wirebroker.quorum.membership.cluster_lookup import controllers_at, find_cluster
from wirebroker.quorum.membership.metadata_observer import MetadataObserver
from wirebroker.security.login.outgoing import connection_method
from wirebroker.storage.files import Files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.base.clock import Clock
    from wirebroker.config import Config
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.net.client.settings import PeerAddress

_NO_NODE: Final = -1


async def read_image(
    addresses: Sequence[PeerAddress], config: Config, *, clock: Clock, timeout_s: float
) -> ClusterImage:
    """Return the committed image of a quorum.

    `timeout_s` is for finding the controllers, and again for their responses. `config` has the
    settings of connections.

    Raises:
        ConfigError: The connections cannot be used.
        StartError: The image is unavailable.
    """
    controllers = controllers_at(addresses, clock, way=connection_method(to_controllers(config)))
    try:
        cluster_id, _ = await find_cluster(controllers, config, clock=clock, timeout_s=timeout_s)
    finally:
        await controllers.close()
    follower = MetadataFollower(clock)
    observer = MetadataObserver(
        config, follower, servers=addresses, files=Files(), clock=clock, on_failure=_ignore
    )
    with tempfile.TemporaryDirectory(prefix="wirebroker-metadata-") as directory:
        try:
            await observer.open(directory, cluster_id, ReplicaKey(_NO_NODE, os.urandom(16)))
            is_complete = await observer.until_caught_up(timeout_s)
        finally:
            await observer.abandon()
    if not is_complete:
        states = observer.describe_servers()
        reason = observer.failure or f"it was not fetched within {timeout_s:g} s: {states}"
        remedy = observer.remedy or "try again"
        raise StartError(f"the cluster's metadata cannot be read: {reason}", remedy)
    return follower.image


def _ignore(reason: str) -> None:
    """Do nothing: `read_image` reports it."""


def lowest_free_id(image: ClusterImage, *, above: int = 0) -> int:
    """Return the lowest node id greater than `above` that no broker or controller has."""
    node_id = above + 1
    while node_id in image.brokers or node_id in image.controllers:
        node_id += 1
    return node_id
