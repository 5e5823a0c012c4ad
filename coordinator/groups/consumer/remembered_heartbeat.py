"""A heartbeat that changed nothing, for repetitions (repeated.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.groups.consumer.consumer_member import ConsumerMember
    from wirebroker.coordinator.groups.serving_shard import ServingShard
    from wirebroker.coordinator.groups.settings import GroupSettings


class RememberedHeartbeat:
    """A heartbeat and what its response depends on.

    Attributes:
        client: The client's id and address.
        response: The bytes of the response's body.
    """

    __slots__ = ("client", "image", "member", "response", "settings", "timeout_ms")

    def __init__(
        self,
        member: ConsumerMember,
        client: tuple[str | None, str],
        shard: ServingShard,
        timeout_ms: int,
        response: bytes,
    ) -> None:
        self.member = member
        self.client = client
        self.image: ClusterImage = shard.image
        self.settings: GroupSettings = shard.settings
        self.timeout_ms = timeout_ms
        self.response = response
