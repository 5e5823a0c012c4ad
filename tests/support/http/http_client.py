"""HTTP requests to a broker, from the test's loop or as raw bytes."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.broker.controller_server import ControllerServer
    from wirebroker.broker.server import Server


class HttpReply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    def json(self) -> Any:
        return json.loads(self.body)


def http_address(server: Server | ControllerServer) -> tuple[str, int]:
    assert server.http is not None, "no HTTP is served"
    return server.http.addresses[0]


async def ask_http(
    address: tuple[str, int],
    path: str,
    *,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
) -> HttpReply:
    all_headers = {"Host": "localhost", "Connection": "close", **(headers or {})}
    if body:
        all_headers.setdefault("Content-Length", str(len(body)))
    lines = [
        f"{method} {path} HTTP/1.1",
        *(f"{name}: {all_headers[name]}" for name in all_headers),
        "",
        "",
    ]
    replied = await send_http(address, "\r\n".join(lines).encode() + body)
    return parse_reply(replied)


async def send_http(address: tuple[str, int], sent: bytes) -> bytes:
    """Send bytes and return all that the server sends until it closes the connection."""
    reader, writer = await asyncio.open_connection(*address)
    try:
        writer.write(sent)
        return await reader.read()
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):  # a closed connection is expected
            await writer.wait_closed()


def parse_reply(replied: bytes) -> HttpReply:
    head, _, body = replied.partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    return HttpReply(int(status.split()[1]), headers, body)
