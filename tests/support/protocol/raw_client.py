"""Clients for decoded messages: they send (key, version, dict) and return the decoded response.

They use the generic codec, which checks the hand-written codecs of the hot paths. `RawClient` runs
on the broker's loop; `BlockingClient` runs in its own thread, so that its work does not count as
blocking of the loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from typing import TYPE_CHECKING, Any

from wirebroker.codecs.api_keys import ApiKey, is_flexible
from wirebroker.codecs.frames import response_header
from wirebroker.codecs.messages import decode_response, encode_request

if TYPE_CHECKING:
    from collections.abc import Mapping

_CLIENT_ID = "raw"


def request_frame(
    key: ApiKey,
    version: int,
    request: Mapping[str, Any],
    *,
    correlation_id: int = 0,
    client_id: str = _CLIENT_ID,
) -> bytes:
    name = client_id.encode()
    head = int(key).to_bytes(2) + version.to_bytes(2) + correlation_id.to_bytes(4)
    head += len(name).to_bytes(2) + name
    if is_flexible(key, version):
        head += b"\x00"
    body = encode_request(key, version, request)
    return (len(head) + len(body)).to_bytes(4) + head + body


def answer_of(key: ApiKey, version: int, frame: bytes, *, correlation_id: int = 0) -> Any:
    """Decode a response frame without its length."""
    assert int.from_bytes(frame[:4]) == correlation_id, "the answer is another request's"
    return decode_response(key, version, frame, len(response_header(key, version, 0)))


class RawClient:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._correlation_id = 0

    @classmethod
    async def connect(cls, address: tuple[str, int]) -> RawClient:
        return cls(*await asyncio.open_connection(*address))

    async def ask(self, key: ApiKey, version: int, request: Mapping[str, Any]) -> Any:
        return await self.receive(key, version, await self.send(key, version, request))

    async def send(
        self,
        key: ApiKey,
        version: int,
        request: Mapping[str, Any],
        *,
        client_id: str = _CLIENT_ID,
    ) -> int:
        self._correlation_id += 1
        frame = request_frame(
            key, version, request, correlation_id=self._correlation_id, client_id=client_id
        )
        self._writer.write(frame)
        await self._writer.drain()
        return self._correlation_id

    async def receive(self, key: ApiKey, version: int, correlation_id: int) -> Any:
        """Wait for the next response, which must have this correlation id."""
        length = int.from_bytes(await self._reader.readexactly(4))
        frame = await self._reader.readexactly(length)
        return answer_of(key, version, frame, correlation_id=correlation_id)

    async def is_closed(self) -> bool:
        """Wait until the broker closes the connection; fail if any bytes arrive."""
        try:
            return await self._reader.read(1) == b""
        except ConnectionError:
            return True

    async def is_cut_off(self) -> bool:
        """Wait for the end of the connection; return whether no complete response arrived."""
        try:
            data = await self._reader.read()
        except ConnectionError:
            return True
        return len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4])

    async def close(self) -> None:
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()

    def reset(self) -> None:
        """Reset the connection, so that the broker can no longer send."""
        sock = self._writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()


class BlockingClient:
    def __init__(self, address: tuple[str, int], *, timeout_s: float = 60.0) -> None:
        self.address = address
        self._socket = socket.create_connection(address, timeout=timeout_s)

    def ask(self, key: ApiKey, version: int, request: Mapping[str, Any]) -> Any:
        return answer_of(key, version, self.exchange(request_frame(key, version, request)))

    def send(self, key: ApiKey, version: int, request: Mapping[str, Any]) -> None:
        self._socket.sendall(request_frame(key, version, request))

    def exchange(self, frame: bytes) -> bytes:
        """Send a complete frame and return the response frame."""
        self.push(frame)
        return self.read_frame()

    def push(self, data: bytes) -> None:
        self._socket.sendall(data)

    def read_frame(self) -> bytes:
        return bytes(self._read(int.from_bytes(self._read(4))))

    def peek(self) -> bytes:
        """Return the next byte, or none if the connection is closed."""
        return self._socket.recv(1, socket.MSG_PEEK)

    def close(self) -> None:
        self._socket.close()

    def _read(self, length: int) -> bytearray:
        data = bytearray(length)
        view = memoryview(data)
        while view:
            count = self._socket.recv_into(view)
            assert count, "the broker has closed the connection"
            view = view[count:]
        return data
