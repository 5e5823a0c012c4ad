"""Envelope: a client's request, forwarded by a broker with the client's principal (KIP-590).

The principal is trusted: with an authorizer, only brokers may send an Envelope, and its request is
authorized for that principal. NOT_CONTROLLER is an error of the Envelope, so that the broker looks
for the active controller.

Source: Kafka's EnvelopeUtils, ControllerApis.handleEnvelope, RequestChannel.buildResponseSend.
"""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING, Any, Final

from wirebroker.api.controller.registry import handles
from wirebroker.api.controller.requests import elements_of
from wirebroker.base.clock import Slices
from wirebroker.base.threads import LONGEST_ON_LOOP_BYTES, coding, in_thread
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.envelope import (
    Header,
    answer_header,
    decode_host,
    decode_principal,
    parse_header,
)
from wirebroker.codecs.errors import ErrorCode, KafkaError, MalformedFrameError
from wirebroker.codecs.messages import decode_request, encode_response
from wirebroker.codecs.permissions import CLUSTER_ACTION
from wirebroker.coordinator.controller.controller import DECLARED_OPERATIONS, refusal
from wirebroker.coordinator.controller.requests.request import ControllerRequest, Requester
from wirebroker.request.handlers import Cost

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from wirebroker.quorum.controller.quorum_controller import QuorumController
    from wirebroker.request.request import Request

LOGGER = logging.getLogger(__name__)

# Estimated size of a response element.
_ELEMENT_BYTES: Final = 1024


@handles(ApiKey.ENVELOPE, permissions=(CLUSTER_ACTION,), cost=Cost.CONTROLLER)
async def unwrap(controller: QuorumController, request: Request, body: Any) -> dict[str, Any]:
    """Serve the request in an Envelope."""
    try:
        header, requester = _forwarded(body)
        inner = await _decode(header, body.request_data)
    except KafkaError as error:
        LOGGER.warning(
            "refusing a request forwarded by %s: %s", request.session.peer, error.message
        )
        return {"error_code": int(error.code), "response_data": None}
    controller_request = ControllerRequest(header.key, header.version, inner, requester)
    try:
        answer = await controller.carry_out(controller_request)
    except KafkaError as error:
        if error.code is ErrorCode.NOT_CONTROLLER:
            return {"error_code": int(error.code), "response_data": None}
        answer = await Slices(controller.clock).run(refusal(controller_request, error))
    return {"error_code": 0, "response_data": await _encode(header, answer)}


def _forwarded(envelope: Any) -> tuple[Header, Requester]:
    with _malformed_as(ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE):
        principal = decode_principal(envelope.request_principal or b"")
    with _malformed_as(ErrorCode.INVALID_REQUEST):
        host = decode_host(envelope.client_host_address)
    with _malformed_as(ErrorCode.UNSUPPORTED_VERSION):
        header = parse_header(envelope.request_data)
    declaration = DECLARED_OPERATIONS.get(header.key)
    if declaration is None or not declaration.is_forwardable:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{header.key.name} must not be forwarded")
    return header, Requester(principal, host, header.client_id)


@contextlib.contextmanager
def _malformed_as(code: ErrorCode) -> Generator[None]:
    """Raise KafkaError with this code instead of MalformedFrameError."""
    try:
        yield
    except MalformedFrameError as error:
        raise KafkaError(code, str(error)) from None


async def _decode(header: Header, frame: bytes) -> Any:
    arguments = header.key, header.version, frame, header.position
    with _malformed_as(ErrorCode.UNSUPPORTED_VERSION):
        if len(frame) <= LONGEST_ON_LOOP_BYTES:
            return decode_request(*arguments)
        return await in_thread(coding(len(frame)), decode_request, *arguments)


async def _encode(header: Header, answer: Mapping[str, Any]) -> bytes:
    head = answer_header(header.key, header.version, header.correlation_id)
    elements = elements_of(answer)
    if elements <= 1:
        return head + encode_response(header.key, header.version, answer)
    work = coding(elements * _ELEMENT_BYTES)
    return head + await in_thread(work, encode_response, header.key, header.version, answer)
