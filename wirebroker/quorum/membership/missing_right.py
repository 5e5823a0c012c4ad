"""The right that a node of a cluster needs, and the user who lacks it, for errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wirebroker.config.listeners.listeners import to_controllers

if TYPE_CHECKING:
    from wirebroker.config import Config
    from wirebroker.config.security.outgoing import OutgoingSecurity


class MissingRight(NamedTuple):
    """The refusal of a node without the right, and what to do about it."""

    what: str
    remedy: str


def missing_right(config: Config) -> MissingRight:
    """Describe that the controllers deny this node ClusterAction on the cluster."""
    principal = _principal(to_controllers(config))
    return MissingRight(
        f"{principal} lacks CLUSTER_ACTION on CLUSTER",
        f"grant it (wirebroker acl create --allow {principal} --operation cluster_action"
        f" --cluster), or add {principal} to super.users of the controllers",
    )


def _principal(security: OutgoingSecurity) -> str:
    """Return the principal as the controllers see it, as far as this node knows."""
    if security.login is not None:
        return f"User:{security.login.user}"
    if security.tls is not None and (security.tls.keystore.location or security.tls.keystore.key):
        return "the user of this node's certificate"
    return "User:ANONYMOUS"
