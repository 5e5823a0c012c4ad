"""The authorizer of this process, which follows the cluster's ACLs; loaded if there is one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from wirebroker.authorization.access import Authorization
    from wirebroker.config import Config
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.controller.image.image_change import ImageChange


class _Metadata(Protocol):
    """The cluster as this node sees it (quorum/image/metadata_follower.py)."""

    @property
    def image(self) -> ClusterImage: ...

    def subscribe(
        self, name: str, follow: Callable[[ImageChange, ClusterImage], Awaitable[None]]
    ) -> None: ...


def follow_acls(config: Config, metadata: _Metadata) -> Authorization | None:
    """Return who decides what clients may do; None: nobody was asked for.

    A change of the ACLs holds before whoever asked for it is answered.

    Raises:
        StartError: The authorizer cannot be used.
    """
    if not config.str("authorizer.class.name"):
        return None
    # Most brokers have none, and do without 4 ms of a start.
    from wirebroker.authorization.access import Authorization  # noqa: PLC0415
    from wirebroker.authorization.authorizer import (  # noqa: PLC0415
        StandardAuthorizer,
        load_authorizer,
    )

    standard = StandardAuthorizer(config)
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
    """Return in plain words which kinds of protection the metadata holds and nobody enforces."""
    has_authorizer = bool(config.str("authorizer.class.name"))
    return ("ACLs",) if image.acls and not has_authorizer else ()
