"""The roles of a user or token, for each cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.console.changes.change import ConsoleRole

if TYPE_CHECKING:
    from collections.abc import Mapping

ROLE_NAMES: Final = {role.name.lower(): role for role in ConsoleRole}
_MOST_CLUSTERS: Final = 1000


class Grants(NamedTuple):
    """Roles: `reader,admin@test` is reader of all clusters, and admin of `test`.

    Attributes:
        everywhere: The role in clusters without their own; None allows nothing there.
        clusters: Roles by cluster.
    """

    everywhere: ConsoleRole | None
    clusters: Mapping[str, ConsoleRole]

    def role_in(self, cluster: str) -> ConsoleRole | None:
        """Return the role in a cluster; None hides it."""
        return self.clusters.get(cluster, self.everywhere)

    def text(self) -> str:
        """Return the form that `grants_of` parses."""
        parts = [] if self.everywhere is None else [self.everywhere.name.lower()]
        parts += [f"{role.name.lower()}@{name}" for name, role in self.clusters.items()]
        return ",".join(parts)


NO_GRANTS: Final = Grants(None, {})
ADMIN_EVERYWHERE: Final = Grants(ConsoleRole.ADMIN, {})


def grants_of(text: str) -> Grants:
    """Parse `ROLE[@CLUSTER],…`.

    Raises:
        ValueError: A role is unknown, or given twice.
    """
    everywhere: ConsoleRole | None = None
    clusters: dict[str, ConsoleRole] = {}
    parts = text.split(",")
    if len(parts) > _MOST_CLUSTERS:
        raise ValueError(f"there are more than {_MOST_CLUSTERS} roles")
    for part in parts:
        name, at, cluster = (piece.strip() for piece in part.partition("@"))
        role = ROLE_NAMES.get(name)
        if role is None or (at and not cluster):
            known = ", ".join(ROLE_NAMES)
            raise ValueError(f"{part.strip()!r} is not ROLE or ROLE@CLUSTER; roles: {known}")
        if cluster in clusters or (not at and everywhere is not None):
            raise ValueError(f"there are two roles for {cluster or 'all clusters'}")
        if at:
            clusters[cluster] = role
        else:
            everywhere = role
    return Grants(everywhere, clusters)
