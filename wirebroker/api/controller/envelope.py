"""Envelope: a client's request that a broker forwards, with who asked (KIP-590).

Whom an Envelope names is believed: where there is an authorizer, who may send one is a broker, and
what is in it is done as far as its principal may. What cannot be read is refused as a whole. That
this is not the active controller is said of the Envelope, whose sender looks for another one, and
not of what is in it, which only its client reads (as Kafka's RequestChannel.buildResponseSend).

Source: Kafka's EnvelopeUtils and ControllerApis.handleEnvelope.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from wirebroker.api.controller.long_answer import elements_of
from wirebroker.api.controller.registry import handles
from wirebroker.base.clock import Slices
from wirebroker.base.threads import coding, in_thread
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.envelope import (
    Header,
    Principal,
    answer_header,
    decode_host,
    decode_principal,
    parse_header,
)
from wirebroker.codecs.errors import ErrorCode, KafkaError, MalformedFrameError
from wirebroker.codecs.messages import decode_request, encode_response
from wirebroker.coordinator.controller.controller import SERVED_KEYS, ControllerRequest, refusal
from wirebroker.request.handlers import Cost
from wirebroker.request.needs import CLUSTER_ACTION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.coordinator.quotas.shared_meters import Owner
    from wirebroker.quorum.controller.quorum_controller import QuorumController
    from wirebroker.request.request import Request

LOGGER = logging.getLogger(__name__)

# Longer bodies are decoded and encoded in a thread (net/dispatch.py has the same bound).
_LONGEST_ON_LOOP_BYTES: Final = 64 << 10
# What an element of an answer is taken for, to choose who encodes it.
_ELEMENT_BYTES: Final = 1024


@handles(ApiKey.ENVELOPE, needs=(CLUSTER_ACTION,), cost=Cost.CONTROLLER)
async def unwrap(controller: QuorumController, request: Request, body: Any) -> dict[str, Any]:
    """Carry out what an Envelope carries."""
    try:
        header, asker, client = _forwarded(body)
        inner = await _decode(header, body.request_data)
    except MalformedFrameError as error:
        LOGGER.warning("a request that %s forwards is refused: %s", request.session.peer, error)
        return {"error_code": int(ErrorCode.INVALID_REQUEST), "response_data": None}
    asked = ControllerRequest(header.key, header.version, inner, asker, client)
    try:
        answer = await controller.carry_out(asked)
    except KafkaError as error:
        if error.code is ErrorCode.NOT_CONTROLLER:
            return {"error_code": int(error.code), "response_data": None}
        answer = await Slices(controller.clock).run(refusal(asked, error))
    return {"error_code": 0, "response_data": await _encode(header, answer)}


def _forwarded(envelope: Any) -> tuple[Header, Owner, tuple[Principal, str]]:
    """Return the header of the request in an Envelope, whose quotas count, and who asks from where.

    Raises:
        MalformedFrameError: It is none that is forwarded, or who asks cannot be read.
    """
    header = parse_header(envelope.request_data)
    principal = decode_principal(envelope.request_principal or b"")
    host = decode_host(envelope.client_host_address)
    if header.key not in SERVED_KEYS and header.key is not ApiKey.DESCRIBE_QUORUM:
        raise MalformedFrameError(f"{header.key.name} is not to be forwarded")
    return header, (principal.name, header.client_id or ""), (principal, host)


async def _decode(header: Header, frame: bytes) -> Any:
    arguments = header.key, header.version, frame, header.position
    if len(frame) <= _LONGEST_ON_LOOP_BYTES:
        return decode_request(*arguments)
    return await in_thread(coding(len(frame)), decode_request, *arguments)


async def _encode(header: Header, answer: Mapping[str, Any]) -> bytes:
    head = answer_header(header.key, header.version, header.correlation_id)
    elements = elements_of(answer)
    if elements <= 1:
        return head + encode_response(header.key, header.version, answer)
    work = coding(elements * _ELEMENT_BYTES)
    return head + await in_thread(work, encode_response, header.key, header.version, answer)
