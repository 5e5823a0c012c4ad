"""The right that a node of a cluster needs, and the user who lacks it, for errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wirebroker.config.java.jaas import PASSWORD_MECHANISMS
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
    known = _principal(to_controllers(config))
    subject = known or "the principal of this node"
    return MissingRight(
        f"{subject} lacks CLUSTER_ACTION on CLUSTER",
        f"grant it (wirebroker acl create --allow {known or 'PRINCIPAL'} --operation cluster_action"
        f" --cluster), or add {subject} to super.users of the controllers",
    )


def _principal(security: OutgoingSecurity) -> str | None:
    """Return the principal as the controllers see it; None if only they know it.

    They derive it from a certificate, an OAuth token, a Kerberos principal, or the owner of a
    delegation token, by their own settings.
    """
    login, tls = security.login, security.tls
    if login is not None:
        is_known = login.mechanism in PASSWORD_MECHANISMS and not login.by_token
        return f"User:{login.user}" if is_known else None
    has_certificate = tls is not None and bool(tls.keystore.location or tls.keystore.key)
    return None if has_certificate else "User:ANONYMOUS"
