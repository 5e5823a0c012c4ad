"""The channel to a controller in another process.

A client's request is sent in an Envelope, with its principal, address and version. Requests are
retried with the current active controller until they time out.

Source: Kafka's NodeToControllerChannelManager and ForwardingManager (KIP-590).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.base.clock import Slices
from wirebroker.base.threads import LONGEST_ON_LOOP_BYTES, Work, coding, in_thread
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.client_frames import parse_response_header, request_header
from wirebroker.codecs.envelope import encode_host, encode_principal
from wirebroker.codecs.errors import ErrorCode, KafkaError, MalformedFrameError
from wirebroker.codecs.messages import decode_response, encode_request
from wirebroker.coordinator.controller.controller import refusal
from wirebroker.coordinator.controller.requests.request import ControllerRequest
from wirebroker.net.client.errors import PeerError, RequestTimedOutError, UnsupportedVersionError
from wirebroker.quorum.channel.controller_channel import check_answer
from wirebroker.request.request import holds_much

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.base.clock import Clock
    from wirebroker.coordinator.controller.requests.request import Requester
    from wirebroker.net.client.active_controller import ActiveController
    from wirebroker.quorum.channel.controller_channel import RequestFields

# Kafka's request.timeout.ms.
TIMEOUT_S: Final = 30.0
# Fields by name take twice the time of decoding.
_LONGEST_ON_LOOP_BYTES: Final = LONGEST_ON_LOOP_BYTES // 4
# Any number: the inner request is alone in its envelope.
_CORRELATION_ID: Final = 0


class RemoteChannel:
    """The channel to the active controller of a quorum.

    Attributes:
        silence: Returns a message if no controller responds, or None. DescribeQuorum immediately
            fails with this message.
    """

    __slots__ = ("_clock", "_controllers", "_timeout_s", "silence")

    def __init__(
        self, controllers: ActiveController, clock: Clock, *, timeout_s: float = TIMEOUT_S
    ) -> None:
        self._controllers = controllers
        self._clock = clock
        self._timeout_s = timeout_s
        self.silence: Callable[[], str | None] = _no_body

    async def ask(self, key: ApiKey, body: RequestFields) -> Any:
        """Send a request of this broker; return the decoded response.

        Raises:
            KafkaError: REQUEST_TIMED_OUT, NETWORK_EXCEPTION, or UNSUPPORTED_VERSION if the
                controller does not know the request.
        """
        try:
            return await self._controllers.request(key, body, timeout_s=self._timeout_s)
        except PeerError as error:
            raise _as_kafka_error(error) from error

    async def forward(
        self, key: ApiKey, version: int, body: Any, requester: Requester
    ) -> dict[str, Any]:
        """Send a client's request."""
        client_id = (requester.client_id or "").encode()
        head = request_header(key, version, _CORRELATION_ID, client_id)
        envelope = {
            "request_data": head + await _encoded(key, version, body),
            "request_principal": encode_principal(requester.principal),
            "client_host_address": encode_host(requester.host),
        }
        request = ControllerRequest(key, version, body)
        if key is ApiKey.DESCRIBE_QUORUM and (silence := self.silence()) is not None:
            return await self._refused(request, KafkaError(ErrorCode.REQUEST_TIMED_OUT, silence))
        try:
            answer = check_answer(await self.ask(ApiKey.ENVELOPE, envelope))
            return await _decoded(key, version, answer.response_data)
        except KafkaError as error:
            return await self._refused(request, error)

    async def _refused(self, request: ControllerRequest, error: KafkaError) -> dict[str, Any]:
        return await Slices(self._clock).run(refusal(request, error))

    async def close(self) -> None:
        """Close the connections."""
        await self._controllers.close()


def _no_body() -> None:
    return None


async def _encoded(key: ApiKey, version: int, body: Any) -> bytes:
    if holds_much(body):
        return await in_thread(Work.CODING, encode_request, key, version, body)
    return encode_request(key, version, body)


async def _decoded(key: ApiKey, version: int, data: bytes | None) -> dict[str, Any]:
    try:
        _, position = parse_response_header(key, version, data or b"")
        if len(data or b"") <= _LONGEST_ON_LOOP_BYTES:
            return _fields(key, version, data or b"", position)
        assert data is not None
        return await in_thread(coding(len(data)), _fields, key, version, data, position)
    except MalformedFrameError as error:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error


def _fields(key: ApiKey, version: int, data: bytes, position: int) -> dict[str, Any]:
    fields: dict[str, Any] = decode_response(key, version, data, position).as_dict()
    return fields


def _as_kafka_error(error: PeerError) -> KafkaError:
    if isinstance(error, UnsupportedVersionError):
        return KafkaError(ErrorCode.UNSUPPORTED_VERSION, str(error))
    if isinstance(error, RequestTimedOutError):
        return KafkaError(ErrorCode.REQUEST_TIMED_OUT, str(error))
    return KafkaError(ErrorCode.NETWORK_EXCEPTION, str(error))
