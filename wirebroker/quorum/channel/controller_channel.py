"""The broker's way to the active controller, in this process or elsewhere.

Source: Kafka's NodeToControllerChannelManager and ForwardingManager (KIP-590).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.messages import request_message, response_message
from wirebroker.coordinator.controller.requests.request import ControllerRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from wirebroker.codecs.api_keys import ApiKey
    from wirebroker.coordinator.controller.requests.request import Requester
    from wirebroker.quorum.controller.quorum_controller import QuorumController

    # Fields by name, or a function that returns them for a version.
    RequestFields = Mapping[str, Any] | Callable[[int], Mapping[str, Any]]


class ControllerChannel(Protocol):
    """Sends requests to the controller."""

    async def ask(self, key: ApiKey, body: RequestFields) -> Any:
        """Send a request of this broker, in the newest common version; return the decoded response.

        Missing fields in `body` have Kafka's defaults.

        Raises:
            KafkaError: NOT_CONTROLLER: no controller is reachable. Top-level errors of a response
                are returned in it.
        """
        ...

    async def forward(
        self, key: ApiKey, version: int, body: Any, requester: Requester
    ) -> dict[str, Any]:
        """Send a client's request; return the fields of the response, in the same version.

        Raises:
            KafkaError: As in `ask`.
        """
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


class LocalChannel:
    """The channel to a controller in the same process."""

    __slots__ = ("_controller",)

    def __init__(self, controller: QuorumController) -> None:
        self._controller = controller

    async def ask(self, key: ApiKey, body: RequestFields) -> Any:
        """Carry out a request of this broker."""
        message = request_message(key)
        version = message.versions[-1]
        fields = body(version) if callable(body) else body
        request = ControllerRequest(key, version, message.struct_class(**fields))
        return response_message(key).struct_class(**await self._controller.handle(request))

    async def forward(
        self, key: ApiKey, version: int, body: Any, requester: Requester
    ) -> dict[str, Any]:
        """Carry out a client's request."""
        request = ControllerRequest(key, version, body, requester)
        return await self._controller.handle(request)

    async def close(self) -> None:
        """Do nothing: the controller has another owner."""


def check_answer(answer: Any) -> Any:
    """Return a response without a top-level error.

    Raises:
        KafkaError: The response has one.
    """
    if answer.error_code:
        code = ErrorCode(answer.error_code)
        raise KafkaError(code, getattr(answer, "error_message", None) or code.name)
    return answer
