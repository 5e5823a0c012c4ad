"""Clients that speak in decoded messages: (key, version, dict) out, the decoded answer in.

Requests and answers go through the generic codec, a second opinion on what the hot paths read and
write by hand. `RawClient` runs on the broker's own loop, `BlockingClient` in a thread of its own,
so that its work does not show in the loop's holds.
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
    """Return a whole frame, length included."""
    name = client_id.encode()
    head = int(key).to_bytes(2) + version.to_bytes(2) + correlation_id.to_bytes(4)
    head += len(name).to_bytes(2) + name
    if is_flexible(key, version):
        head += b"\x00"
    body = encode_request(key, version, request)
    return (len(head) + len(body)).to_bytes(4) + head + body


def answer_of(key: ApiKey, version: int, frame: bytes, *, correlation_id: int = 0) -> Any:
    """Decode an answer's frame (without its length)."""
    assert int.from_bytes(frame[:4]) == correlation_id, "the answer is another request's"
    return decode_response(key, version, frame, len(response_header(key, version, 0)))


class RawClient:
    """One connection on asyncio's streams."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._correlation_id = 0

    @classmethod
    async def connect(cls, address: tuple[str, int]) -> RawClient:
        """Connect to a broker."""
        return cls(*await asyncio.open_connection(*address))

    async def ask(self, key: ApiKey, version: int, request: Mapping[str, Any]) -> Any:
        """Send a request and wait for its answer."""
        return await self.receive(key, version, await self.send(key, version, request))

    async def send(
        self,
        key: ApiKey,
        version: int,
        request: Mapping[str, Any],
        *,
        client_id: str = _CLIENT_ID,
    ) -> int:
        """Send a request; return its correlation id."""
        self._correlation_id += 1
        frame = request_frame(
            key, version, request, correlation_id=self._correlation_id, client_id=client_id
        )
        self._writer.write(frame)
        await self._writer.drain()
        return self._correlation_id

    async def receive(self, key: ApiKey, version: int, correlation_id: int) -> Any:
        """Wait for the next answer, which must be to that request."""
        length = int.from_bytes(await self._reader.readexactly(4))
        frame = await self._reader.readexactly(length)
        return answer_of(key, version, frame, correlation_id=correlation_id)

    async def is_closed(self) -> bool:
        """Wait until the broker closes the connection; anything else that comes is an error."""
        try:
            return await self._reader.read(1) == b""
        except ConnectionError:
            return True

    async def is_cut_off(self) -> bool:
        """Wait until the broker closes the connection; say that no whole answer came before."""
        try:
            rest = await self._reader.read()
        except ConnectionError:
            return True
        return len(rest) < 4 or len(rest) < 4 + int.from_bytes(rest[:4])

    async def close(self) -> None:
        """Close the connection."""
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()

    def reset(self) -> None:
        """Close the connection by a reset: the broker cannot send any more."""
        sock = self._writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()


class BlockingClient:
    """One connection on a blocking socket."""

    def __init__(self, address: tuple[str, int], *, timeout_s: float = 60.0) -> None:
        self.address = address
        self._socket = socket.create_connection(address, timeout=timeout_s)

    def ask(self, key: ApiKey, version: int, request: Mapping[str, Any]) -> Any:
        """Send a request and return its decoded answer."""
        return answer_of(key, version, self.exchange(request_frame(key, version, request)))

    def send(self, key: ApiKey, version: int, request: Mapping[str, Any]) -> None:
        """Send a request whose answer nobody waits for."""
        self._socket.sendall(request_frame(key, version, request))

    def exchange(self, frame: bytes) -> bytes:
        """Send a frame made before, and return the answer's as it came."""
        self.push(frame)
        return self.read_frame()

    def push(self, data: bytes) -> None:
        """Send a frame that was made before, or a part of one."""
        self._socket.sendall(data)

    def read_frame(self) -> bytes:
        """Return the next frame that comes, without its length."""
        return bytes(self._read(int.from_bytes(self._read(4))))

    def peek(self) -> bytes:
        """Return the first byte that comes, none if the connection is closed."""
        return self._socket.recv(1, socket.MSG_PEEK)

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def _read(self, length: int) -> bytearray:
        data = bytearray(length)
        view = memoryview(data)
        while view:
            count = self._socket.recv_into(view)
            assert count, "the broker has closed the connection"
            view = view[count:]
        return data
