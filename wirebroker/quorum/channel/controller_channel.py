"""The way to the controller: requests of Kafka's own go in, what it answers comes out.

    answer = await channel.ask(ApiKey.ALLOCATE_PRODUCER_IDS, {...})       this broker asks
    answer = await channel.forward(key, version, body, requester)        one of its clients asks

Whoever asks does not know where the controller is:

    LocalChannel     in this process (quorum_controller.py)
    RemoteChannel    behind a connection (remote_channel.py), by the same messages on the wire

A client's request is answered in the version in which it came; a broker's own in the newest that
both know.

Source: Kafka's NodeToControllerChannelManager and ForwardingManager (KIP-590).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from wirebroker.codecs.envelope import Principal
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.messages import request_message, response_message
from wirebroker.coordinator.controller.controller import ControllerRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from wirebroker.codecs.api_keys import ApiKey
    from wirebroker.quorum.controller.quorum_controller import QuorumController

    # Fields by name; or a function of the version that gives them, where versions differ.
    Asking = Mapping[str, Any] | Callable[[int], Mapping[str, Any]]


class Requester(NamedTuple):
    """The client that a request is forwarded for."""

    client_id: str | None = None
    # An IPv4 or IPv6 address as text.
    host: str = "127.0.0.1"
    principal_type: str = "User"
    principal_name: str = "ANONYMOUS"
    is_by_token: bool = False

    @property
    def asker(self) -> tuple[str, str]:
        """Return whose quotas count: the principal's name and the client id."""
        return self.principal_name, self.client_id or ""


class ControllerChannel(Protocol):
    """What brokers ask the controller through."""

    async def ask(self, key: ApiKey, body: Asking) -> Any:
        """Send a request of this broker's own; return the decoded answer.

        Args:
            key: What is asked for.
            body: The request's fields; those that are missing have Kafka's defaults. Or a function
                of the version that gives them.

        Raises:
            KafkaError: NOT_CONTROLLER: nobody could be asked; KAFKA_STORAGE_ERROR and others that
                an answer has at its top are in the answer, as in Kafka's protocol.
        """
        ...

    async def forward(self, key: ApiKey, version: int, body: Any, requester: Requester) -> Any:
        """Send a client's request; return the answer, to be encoded in the same version.

        Args:
            key: What is asked for.
            version: Of the client's request.
            body: The decoded request.
            requester: Who asks.

        Raises:
            KafkaError: As `ask`.
        """
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...


class LocalChannel:
    """The way to a controller in the same process."""

    __slots__ = ("_controller",)

    def __init__(self, controller: QuorumController) -> None:
        self._controller = controller

    async def ask(self, key: ApiKey, body: Asking) -> Any:
        """Have a request of this broker's own carried out; see ControllerChannel."""
        message = request_message(key)
        version = message.versions[-1]
        fields = body(version) if callable(body) else body
        request = ControllerRequest(key, version, message.struct_class(**fields))
        return response_message(key).struct_class(**await self._controller.handle(request))

    async def forward(self, key: ApiKey, version: int, body: Any, requester: Requester) -> Any:
        """Have a client's request carried out; see ControllerChannel."""
        principal = Principal(
            requester.principal_type, requester.principal_name, requester.is_by_token
        )
        client = (principal, requester.host)
        request = ControllerRequest(key, version, body, requester.asker, client)
        return await self._controller.handle(request)

    async def close(self) -> None:
        """Do nothing: the controller belongs to whoever opened it."""


def check_answer(answer: Any) -> Any:
    """Return an answer that has no error at its top.

    Raises:
        KafkaError: The one that it has.
    """
    if answer.error_code:
        code = ErrorCode(answer.error_code)
        raise KafkaError(code, getattr(answer, "error_message", None) or code.name)
    return answer
