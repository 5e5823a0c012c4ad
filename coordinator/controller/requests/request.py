"""A request for the controller, the client that it is for, and what an operation sees.

Source: Kafka's ControllerRequestContext.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from wirebroker.codecs.api_keys import ApiKey  # noqa: TC001 - a tuple's field
from wirebroker.codecs.envelope import Principal
from wirebroker.codecs.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.config import Config
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.outcome import Moment
    from wirebroker.coordinator.quotas.mutation_quota import MutationCharge
    from wirebroker.coordinator.quotas.shared_meters import Owner


class Requester(NamedTuple):
    """The client that has sent a request.

    Attributes:
        host: Its IPv4 or IPv6 address.
    """

    principal: Principal = Principal()
    host: str = "127.0.0.1"
    client_id: str | None = None

    @property
    def quota_owner(self) -> Owner:
        """The names that determine its quotas."""
        return self.principal.name, self.client_id or ""


class ControllerRequest(NamedTuple):
    """A request for the controller.

    Attributes:
        requester: None for a broker's own request.
        is_direct: Whether the client sent it to a controller listener.
    """

    key: ApiKey
    version: int
    body: Any
    requester: Requester | None = None
    is_direct: bool = False


class Sessions(Protocol):
    """See brokers/broker_sessions.py."""

    def is_valid(self, node_id: int, broker_epoch: int, now_ms: int) -> bool:
        """See BrokerSessions."""
        ...

    def may_stop(self, node_id: int, image: ClusterImage) -> bool:
        """See BrokerSessions."""
        ...

    def touch(
        self, node_id: int, broker_epoch: int, now_ms: int, *, metadata_offset: int = -1
    ) -> None:
        """See BrokerSessions."""
        ...

    def stopping(self, node_id: int, shutdown_offset: int) -> None:
        """See BrokerSessions."""
        ...


class QuorumLevel(Protocol):
    """The level of kraft.version, which the quorum's replicas decide."""

    @property
    def level(self) -> int:
        """The present level."""
        ...

    def upgrade(self, level: int, *, is_dry_run: bool) -> None:
        """Raise the level, or only check whether it can be raised.

        Raises:
            KafkaError: INVALID_UPDATE_VERSION; NOT_CONTROLLER.
        """
        ...


class FixedLevel:
    """kraft.version of a controller without a quorum."""

    level = 0

    def upgrade(self, level: int, *, is_dry_run: bool) -> None:
        """See QuorumLevel."""
        del is_dry_run
        if level != self.level:
            message = f"kraft.version cannot go from {self.level} to {level}"
            raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION, message)


class Rules(Protocol):
    """The controller as operations see it; see controller.py."""

    config: Config
    node_id: int
    cluster_id: str
    new_uuid: Callable[[], bytes]
    kraft: QuorumLevel

    @property
    def sessions(self) -> Sessions:
        """The brokers' sessions, which are soft state."""
        ...


class Case(NamedTuple):
    """A request to decide, and the state that it is decided on.

    Attributes:
        image: The newest image.
        charge: What the request may still create or delete under its client's quota.
    """

    request: ControllerRequest
    image: ClusterImage
    now: Moment
    charge: MutationCharge
    rules: Rules

    @property
    def body(self) -> Any:
        """The decoded body."""
        return self.request.body

    @property
    def config(self) -> Config:
        """The controller's configuration."""
        return self.rules.config

    @property
    def principal(self) -> Principal:
        """The client's user; anonymous for a broker."""
        requester = self.request.requester
        return Principal() if requester is None else requester.principal
