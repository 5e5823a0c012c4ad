"""Requests to an ASGI application without a server."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode, urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping

HOST = "127.0.0.1:8989"
CLIENT = "127.0.0.1"


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


def scope_of(method: str, url: str, headers: Mapping[str, str]) -> dict[str, Any]:
    """Return the scope of a request; a header with an empty value is not sent."""
    parts = urlsplit(url)
    sent = {"host": HOST, **{name.lower(): value for name, value in headers.items()}}
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": parts.path,
        "raw_path": parts.path.encode(),
        "query_string": parts.query.encode(),
        "root_path": "",
        "headers": [
            (name.encode("latin-1"), value.encode("latin-1"))
            for name, value in sent.items()
            if value
        ],
        "client": (CLIENT, 50000),
        "server": ("127.0.0.1", 8989),
    }


async def request(
    app: Any,
    url: str,
    *,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
) -> Reply:
    """Send a request and return the whole response."""
    stream = Streaming(app, url, method=method, headers=headers, body=body)
    await stream.task
    return Reply(stream.status, stream.headers, b"".join(stream.chunks))


class Streaming:
    """A request whose response is read while it is sent; `leave` ends it as a browser does."""

    def __init__(
        self,
        app: Any,
        url: str,
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
    ) -> None:
        self._body = body
        self.status = 0
        self.headers: dict[str, str] = {}
        self.chunks: list[bytes] = []
        self._arrived = asyncio.Event()
        self._left = asyncio.Event()
        self._is_sent = False
        scope = scope_of(method, url, headers or {})
        self.task = asyncio.create_task(app(scope, self._receive, self._send))

    async def _receive(self) -> dict[str, Any]:
        if not self._is_sent:
            self._is_sent = True
            return {"type": "http.request", "body": self._body, "more_body": False}
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            pairs = message["headers"]
            self.headers = {name.decode(): value.decode("latin-1") for name, value in pairs}
        else:
            self.chunks.append(message.get("body", b""))
        self._arrived.set()

    async def read_until(self, text: str) -> str:
        """Wait until the response contains a text, and return all that arrived."""
        while text not in (arrived := b"".join(self.chunks).decode()):
            assert not self.task.done(), arrived
            self._arrived.clear()
            await self._arrived.wait()
        return arrived

    async def leave(self) -> None:
        """End the connection, and wait until the application notices."""
        self._left.set()
        await self.task


class Browser:
    """A browser with its cookies, which sends forms with the token of the page before."""

    def __init__(self, app: Any, headers: Mapping[str, str] | None = None) -> None:
        self.app = app
        self.cookies: dict[str, str] = {}
        self.form_token = ""
        self._headers = dict(headers or {})

    async def get(self, url: str, headers: Mapping[str, str] | None = None) -> Reply:
        return await self.send_bytes("GET", url, headers or {})

    async def send(
        self, url: str, form: Mapping[str, str], headers: Mapping[str, str] | None = None
    ) -> Reply:
        """Send a form; fields of `form` replace the token."""
        fields = {"csrf-token": self.form_token, **form}
        sent = {
            "Content-Type": "application/x-www-form-urlencoded",
            "Sec-Fetch-Site": "same-origin",
            **(headers or {}),
        }
        return await self.send_bytes("POST", url, sent, urlencode(fields).encode())

    async def follow(self, reply: Reply) -> Reply:
        assert reply.status == 303, reply.text
        return await self.get(reply.headers["location"])

    async def log_in(self, name: str, password: str, next_page: str = "/") -> Reply:
        await self.get("/login")
        return await self.send("/login", {"name": name, "password": password, "next": next_page})

    async def send_bytes(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes = b""
    ) -> Reply:
        cookie = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        sent = {**self._headers, "Cookie": cookie, **headers}
        reply = await request(  # noqa: ASYNC210 - the function above
            self.app, url, method=method, headers=sent, body=body
        )
        if "set-cookie" in reply.headers:
            name, _, rest = reply.headers["set-cookie"].partition("=")
            self.cookies[name] = rest.partition(";")[0]
        if token := re.search(r'name="csrf-token" value="([^"]+)"', reply.text):
            self.form_token = token[1]
        return reply
