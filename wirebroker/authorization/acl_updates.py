"""The authorizer of this process, kept up to date with the cluster's ACLs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from wirebroker.authorization.access import Authorization
    from wirebroker.config import Config
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.controller.image.image_change import ImageChange


class _Metadata(Protocol):
    """See quorum/image/metadata_follower.py."""

    @property
    def image(self) -> ClusterImage: ...

    def subscribe(
        self, name: str, follow: Callable[[ImageChange, ClusterImage], Awaitable[None]]
    ) -> None: ...


def follow_acls(config: Config, metadata: _Metadata) -> Authorization | None:
    """Return this process's authorization; None if no authorizer is configured.

    With the controller in this process, an ACL change applies before its response is sent.

    Raises:
        StartError: The authorizer cannot be used.
    """
    if not config.str("authorizer.class.name"):
        return None
    from wirebroker.authorization.access import Authorization  # noqa: PLC0415
    from wirebroker.authorization.authorizer import (  # noqa: PLC0415
        StandardAuthorizer,
        load_authorizer,
    )

    standard = StandardAuthorizer.configured(config)
    standard.load(metadata.image.acls)
    authorization = Authorization(load_authorizer(config, standard), standard)

    async def follow(change: ImageChange, image: ClusterImage) -> None:
        del image
        if change.acls:
            standard.apply(change.acls)
            authorization.changed()

    metadata.subscribe("the authorizer", follow)
    return authorization


def unserved_protection(image: ClusterImage, config: Config) -> tuple[str, ...]:
    """Return the kinds of protection in the metadata that nothing enforces."""
    has_authorizer = bool(config.str("authorizer.class.name"))
    return ("ACLs",) if image.acls and not has_authorizer else ()
