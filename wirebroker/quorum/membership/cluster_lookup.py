"""Finds the controllers of a cluster in other processes, and the id of the cluster."""

from __future__ import annotations

import logging
import random
from typing import TYPE_CHECKING, Final

from wirebroker.base.clock import pause
from wirebroker.config.rows.row import StartError
from wirebroker.net.client.active_controller import (
    ActiveController,
    DeniedByControllersError,
    NotControllersError,
)
from wirebroker.net.client.errors import PeerError
from wirebroker.net.client.settings import ClientSettings, PeerAddress
from wirebroker.quorum.membership.leader_refusals import FIRST_PATIENCE_S, LeaderRefusals
from wirebroker.quorum.membership.missing_right import missing_right

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wirebroker.base.clock import Clock
    from wirebroker.config import Config
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.security.login.outgoing import ConnectionMethod

LOGGER = logging.getLogger("wirebroker")

# After this time another controller is tried.
REQUEST_S: Final = 5.0
_RETRY_S: Final = 0.25
_FIND_S: Final = 2.0
_LOG_AGAIN_S: Final = 5.0


def controller_listener(config: Config) -> str:
    """Return the name of the controllers' listener."""
    names = config.list("controller.listener.names")
    return names[0].upper() if names else "CONTROLLER"


def controllers_at(
    addresses: Sequence[PeerAddress],
    clock: Clock,
    *,
    way: ConnectionMethod,
    request_timeout_s: float = REQUEST_S,
    node_id: int | None = None,
    more: Callable[[], Sequence[PeerAddress]] | None = None,
) -> ActiveController:
    """Return new connections to the controllers at `addresses` and `more`."""
    name = "wirebroker" if node_id is None else f"broker-{node_id}"
    return ActiveController(
        addresses,
        dialer=way.dialer,
        handshake=way.handshake,
        settings=ClientSettings(client_id=name, request_timeout_s=request_timeout_s),
        clock=clock,
        random=random.Random(),  # noqa: S311 - jitter, no secrets
        more=more,
    )


def registered_controllers(image: ClusterImage, listener: str) -> dict[int, PeerAddress]:
    """Return the addresses of an image's controllers on a listener, by node id (KIP-919)."""
    return {
        node_id: PeerAddress(endpoint.host, endpoint.port)
        for node_id, record in image.controllers.items()
        for endpoint in record.body.end_points
        if endpoint.name.upper() == listener.upper()
    }


async def find_cluster(
    controllers: ActiveController,
    config: Config,
    *,
    clock: Clock,
    timeout_s: float,
    known_id: str | None = None,
) -> tuple[str, str]:
    """Return the cluster's id and the local address of the connection to its controller.

    Args:
        controllers: The client of the cluster's controllers.
        config: The configuration of this node, for errors.
        clock: The clock.
        timeout_s: How long to look for the active controller.
        known_id: The id to use if the controllers do not return it.

    Raises:
        StartError: No controller has responded in time, they have denied ClusterAction for some
            seconds, or the id is unknown.
    """
    started = clock.monotonic()
    deadline = started + timeout_s
    next_log_at = started
    refusals = LeaderRefusals()
    while True:
        try:
            node = await controllers.find(_FIND_S)
            connection = await node.connect(_FIND_S)
        except NotControllersError as error:
            raise StartError(
                f"no controller was found: {error.what}",
                "give the address of a controller's listener (controller.quorum.bootstrap.servers)",
            ) from error
        except PeerError as error:
            is_denied = isinstance(error, DeniedByControllersError)
            if not is_denied:
                refusals.restart()
            elif refusals.are_final(None, now_s=clock.monotonic()):
                right = missing_right(config)
                raise StartError(
                    f"the controllers have refused this node for {FIRST_PATIENCE_S:.0f} s"
                    f" ({error.what}): {right.what}",
                    right.remedy,
                ) from error
            if clock.monotonic() >= deadline:
                raise StartError(
                    f"no controller was found within {timeout_s:g} s ({error})",
                    "check controller.quorum.bootstrap.servers, and that the controllers run",
                ) from error
            if (now := clock.monotonic()) >= next_log_at:
                next_log_at = now + _LOG_AGAIN_S
                LOGGER.info(
                    "no controller has responded after %.0f of %g s: %s",
                    now - started,
                    timeout_s,
                    error,
                )
            await pause(_RETRY_S)
        else:
            cluster_id = controllers.cluster_id or known_id
            if cluster_id is None:
                raise StartError(
                    "the controllers do not tell this broker the cluster's id, because its user has"
                    " no Alter on the cluster",
                    "set wirebroker.cluster.id=ID, or give the user Alter on the cluster",
                )
            return cluster_id, connection.local_host
