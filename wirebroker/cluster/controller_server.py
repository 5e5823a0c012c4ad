"""The controller's side of the wire: what brokers in other processes ask it.

    ApiVersions, DescribeCluster    what it speaks, that it is the active controller
    a broker's own requests         BrokerRegistration, AllocateProducerIds, AlterPartition, ...
    Envelope                        a client's request that a broker forwards

A connection's requests are answered one after the other, as Kafka does. What a peer declares is not
allocated before it arrives; a frame, the number of connections and the time that one may be idle
have bounds. Whom an Envelope names is believed: until there are authorizers, who may connect may
ask for anything.

Source: Kafka's ControllerApis.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.client_frames import SPOKEN_VERSIONS
from wirebroker.codecs.envelope import (
    Header,
    answer_header,
    decode_host,
    decode_principal,
    parse_header,
)
from wirebroker.codecs.errors import ErrorCode, KafkaError, MalformedFrameError
from wirebroker.codecs.messages import decode_request, encode_response
from wirebroker.coordinator.controller.controller import SERVED_KEYS, ControllerRequest, refusal
from wirebroker.threads import coding, in_thread

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.cluster.quorum_controller import QuorumController

LOGGER = logging.getLogger(__name__)

# A CreateTopics request of 10,000 records is below 2 MiB.
_LONGEST_FRAME: Final = 16 << 20
# Longer bodies are decoded and encoded in a thread (net/dispatch.py has the same bound).
_LONGEST_ON_LOOP_BYTES: Final = 64 << 10
# Some for each of hundreds of brokers.
_MOST_CONNECTIONS: Final = 1_000
# As connections.max.idle.ms.
_MOST_IDLE_S: Final = 600.0
# Which endpoints DescribeCluster is asked for.
_CONTROLLERS: Final = 2

_KEYS: Final = (
    *SERVED_KEYS,
    ApiKey.DESCRIBE_QUORUM,
    ApiKey.API_VERSIONS,
    ApiKey.DESCRIBE_CLUSTER,
    ApiKey.ENVELOPE,
)


class ControllerServer:
    """Answers brokers that have connected to the controller.

    Attributes:
        address: Host and port that it listens on, once started.
    """

    __slots__ = ("_connections", "_controller", "_server", "address")

    def __init__(self, controller: QuorumController) -> None:
        self._controller = controller
        self._connections: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.address = ("", 0)

    async def start(self, host: str, port: int) -> None:
        """Listen.

        Raises:
            OSError: The address cannot be used.
        """
        self._server = await asyncio.start_server(self._serve, host, port)
        name = self._server.sockets[0].getsockname()
        self.address = (name[0], name[1])

    async def close(self) -> None:
        """Close all connections; requests in hand go on, and are not answered."""
        if self._server is not None:
            self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection's requests; the root of its task."""
        task = asyncio.current_task()
        assert task is not None
        peer = writer.get_extra_info("peername")
        if len(self._connections) >= _MOST_CONNECTIONS:
            writer.close()
            return
        self._connections.add(task)
        try:
            while True:
                frame = await _frame(reader)
                answer = await self._answer(frame)
                writer.write(len(answer).to_bytes(4) + answer)
                async with asyncio.timeout(_MOST_IDLE_S):
                    await writer.drain()
        except asyncio.CancelledError:
            return  # the root of the task: asyncio would log it
        except (asyncio.IncompleteReadError, ConnectionError, TimeoutError):
            pass  # it is gone, or was idle for too long
        except MalformedFrameError as error:
            LOGGER.warning("the connection of %s is closed: %s", peer, error)
        except Exception:
            LOGGER.exception("a request of %s to the controller failed", peer)
        finally:
            self._connections.discard(task)
            writer.close()

    async def _answer(self, frame: bytes) -> bytes:
        header = parse_header(frame)
        key, version = header.key, header.version
        if key not in _KEYS:
            raise MalformedFrameError(f"{key.name} is not for controllers")
        if key is ApiKey.API_VERSIONS:
            return _api_versions(header)
        body = await _decode(header, frame)
        if key is ApiKey.ENVELOPE:
            answer = await self._unwrap(body)
        elif key is ApiKey.DESCRIBE_CLUSTER:
            answer = self._describe_cluster(body)
        else:
            answer = await self._controller.handle(ControllerRequest(key, version, body))
        return await _encode(header, answer)

    async def _unwrap(self, envelope: Any) -> dict[str, Any]:
        """Carry out what an Envelope carries; what cannot be read is refused as a whole.

        That this is not the active controller is said of the Envelope, whose sender looks for
        another one, and not of what is in it, which only its client reads (as Kafka's
        RequestChannel.buildResponseSend).
        """
        data = envelope.request_data
        try:
            header = _forwarded(envelope)
            body = await _decode(header, data)
        except MalformedFrameError as error:
            LOGGER.warning("a request that was forwarded is refused: %s", error)
            return {"error_code": int(ErrorCode.INVALID_REQUEST), "response_data": None}
        request = ControllerRequest(header.key, header.version, body)
        try:
            answer = await self._controller.carry_out(request)
        except KafkaError as error:
            if error.code is ErrorCode.NOT_CONTROLLER:
                return {"error_code": int(error.code), "response_data": None}
            answer = refusal(request, error)
        return {"error_code": 0, "response_data": await _encode(header, answer)}

    def _describe_cluster(self, body: Any) -> dict[str, Any]:
        rules = self._controller.rules
        if body.endpoint_type != _CONTROLLERS:
            return {
                "error_code": int(ErrorCode.MISMATCHED_ENDPOINT_TYPE),
                "error_message": "This is a controller's endpoint; ask a broker for brokers.",
                "cluster_id": "",
            }
        host, port = self.address
        return {
            "endpoint_type": _CONTROLLERS,
            "cluster_id": rules.cluster_id,
            "controller_id": rules.node_id,
            "brokers": [{"broker_id": rules.node_id, "host": host, "port": port, "rack": None}],
        }


def _forwarded(envelope: Any) -> Header:
    """Return the header of the request in an Envelope.

    Raises:
        MalformedFrameError: It is none that is forwarded, or who asks cannot be read.
    """
    header = parse_header(envelope.request_data)
    decode_principal(envelope.request_principal or b"")
    decode_host(envelope.client_host_address)
    if header.key not in SERVED_KEYS and header.key is not ApiKey.DESCRIBE_QUORUM:
        raise MalformedFrameError(f"{header.key.name} is not to be forwarded")
    return header


async def _frame(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(_MOST_IDLE_S):
        length = int.from_bytes(await reader.readexactly(4), signed=True)
        if not 0 <= length <= _LONGEST_FRAME:
            raise MalformedFrameError(f"a frame of {length} bytes")
        return await reader.readexactly(length)


async def _decode(header: Header, frame: bytes) -> Any:
    arguments = header.key, header.version, frame, header.position
    if len(frame) <= _LONGEST_ON_LOOP_BYTES:
        return decode_request(*arguments)
    return await in_thread(coding(len(frame)), decode_request, *arguments)


async def _encode(header: Header, answer: Mapping[str, Any]) -> bytes:
    """Encode an answer; one of many elements in a thread, since nobody knows how long it gets."""
    head = answer_header(header.key, header.version, header.correlation_id)
    arrays: list[list[Any]] = [each for each in answer.values() if isinstance(each, list)]
    elements = sum(map(len, arrays))
    if elements <= 1:
        return head + encode_response(header.key, header.version, answer)
    work = coding(elements * 1024)
    return head + await in_thread(work, encode_response, header.key, header.version, answer)


def _api_versions(header: Header) -> bytes:
    spoken = SPOKEN_VERSIONS[ApiKey.API_VERSIONS]
    is_known = spoken.min_version <= header.version <= spoken.max_version
    keys = [
        {
            "api_key": int(key),
            "min_version": SPOKEN_VERSIONS[key].min_version,
            "max_version": SPOKEN_VERSIONS[key].max_version,
        }
        for key in sorted(_KEYS)
    ]
    error = ErrorCode.NONE if is_known else ErrorCode.UNSUPPORTED_VERSION
    version = header.version if is_known else 0
    head = answer_header(header.key, version, header.correlation_id)
    body = {"error_code": int(error), "api_keys": keys}
    return head + encode_response(header.key, version, body)
