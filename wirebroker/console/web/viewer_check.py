"""Find the user of each request; send browsers without a session to the login page.

A stream ends with its session, and when its user's roles change.
"""

from __future__ import annotations

import asyncio
import html
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse

from wirebroker.console.login.access_tokens import bearer_token
from wirebroker.console.login.sessions import LONGEST_S, new_session_id
from wirebroker.console.pages.login import LOGIN_PATH, next_page
from wirebroker.console.records.downloads import CutDownloadError
from wirebroker.console.web.request_check import API_PATH
from wirebroker.console.web.stream_limit import stream_kind

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from wirebroker.console.login.access import ConsoleAccess
    from wirebroker.console.login.viewer import Viewer
    from wirebroker.console.web.site_address import SiteAddress

_STATIC_PATH: Final = "/static/"
_MOST_COOKIE_CHARACTERS: Final = 64
_LEAST_COOKIE_CHARACTERS: Final = 43
# A stream's session is checked this often; a logout ends the stream immediately.
_CHECK_S: Final = 10.0
_OTHER_SITES: Final = frozenset({"cross-site", "same-site"})


class ViewerCheck:
    """Middleware that adds `viewer` to the scope, or responds itself."""

    __slots__ = ("_access", "_app", "_site")

    def __init__(self, app: ASGIApp, access: ConsoleAccess, site: SiteAddress) -> None:
        self._app = app
        self._access = access
        self._site = site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request for its user."""
        if scope["type"] != "http" or scope["path"].startswith(_STATIC_PATH):
            await self._app(scope, receive, send)
            return
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        if scope["path"].startswith(API_PATH):
            await self._serve_program(scope, receive, send, headers)
        else:
            await self._serve_browser(scope, receive, send, headers)

    async def _serve_program(
        self, scope: Scope, receive: Receive, send: Send, headers: dict[str, str]
    ) -> None:
        token = bearer_token(headers.get("authorization"))
        address = self._site.client_of(scope)
        viewer = None if token is None else self._access.viewer_of_token(token, address)
        if viewer is None:
            response = self._token_refusal(has_token=token is not None)
            await response(scope, receive, send)
            return
        scope["viewer"] = viewer
        await self._app(scope, receive, send)

    def _token_refusal(self, *, has_token: bool) -> Response:
        if not self._access.has_programs:
            message = "the console was started without --tokens FILE"
        elif has_token:
            message = "the token is not one of this console"
        else:
            message = "send a token in the header Authorization: Bearer TOKEN"
        return JSONResponse(
            {"error": {"status": 401, "message": message}}, 401, {"WWW-Authenticate": "Bearer"}
        )

    async def _serve_browser(
        self, scope: Scope, receive: Receive, send: Send, headers: dict[str, str]
    ) -> None:
        name = self._site.cookie_name(scope)
        sent = cookie_of(headers.get("cookie", ""), name)
        if sent is None and headers.get("sec-fetch-site") in _OTHER_SITES:
            await _page_again(scope)(scope, receive, send)
            return
        cookie = sent or new_session_id()
        is_stream = stream_kind(scope) is not None
        # Pages refresh themselves; that does not keep a session alive.
        is_used = not is_stream and headers.get("hx-request") != "true"
        viewer = self._access.viewer_of_cookie(cookie, self._site.client_of(scope), is_used=is_used)
        scope["viewer"] = viewer
        is_open = not self._access.requires_login or scope["path"] == LOGIN_PATH
        if not is_open and viewer.session is None:
            await self._login_response(scope, headers)(scope, receive, send)
            return
        scope["new_cookie"] = None if sent else cookie
        send = self._with_cookie(scope, send, name)
        if is_stream and viewer.session is not None:
            await _SessionStream(self._access, viewer, receive, send).serve(self._app, scope)
        else:
            await self._app(scope, receive, send)

    def _login_response(self, scope: Scope, headers: dict[str, str]) -> Response:
        is_page = scope["method"] in {"GET", "HEAD"} and stream_kind(scope) is None
        address = f"{LOGIN_PATH}?next={quote(_here(scope))}" if is_page else LOGIN_PATH
        if is_page and headers.get("hx-request") != "true":
            return RedirectResponse(address, status_code=303)
        return PlainTextResponse(
            "Log in first.\n", status_code=401, headers={"HX-Redirect": address}
        )

    def _with_cookie(self, scope: Scope, send: Send, name: str) -> Send:
        async def send_with_cookie(message: Message) -> None:
            value = scope.get("new_cookie")
            if message["type"] == "http.response.start" and value is not None:
                age_s = LONGEST_S if value else 0
                attributes = f"; Path=/; Max-Age={age_s:.0f}; HttpOnly; SameSite=Strict"
                if self._site.is_secure:
                    attributes += "; Secure"
                header = (b"set-cookie", f"{name}={value}{attributes}".encode())
                message = {**message, "headers": [*message.get("headers", ()), header]}
            await send(message)

        return send_with_cookie


def _page_again(scope: Scope) -> Response:
    """Return a page that opens the requested one.

    Browsers do not send the cookie if a link of another site was followed, but then they do.
    """
    address = html.escape(next_page(_here(scope)))
    return HTMLResponse(
        '<!doctype html><html lang="en"><title>wirebroker console</title>'
        f'<meta http-equiv="refresh" content="0; url={address}">'
        f'<p><a href="{address}">Open the console</a></p></html>\n'
    )


def _here(scope: Scope) -> str:
    """Return the path and query of a request."""
    query: str = scope["query_string"].decode("latin-1")
    path = quote(scope["path"])
    return f"{path}?{query}" if query else path


def cookie_of(header: str, name: str) -> str | None:
    """Return the value of a cookie in a Cookie header, if it has the form of a session id.

    Cookies of other programs at the same host may have any form.
    """
    pairs = (part.strip(" \t").partition("=") for part in header.split(";"))
    value = next((value for key, _, value in pairs if key == name), "")
    is_ours = (
        _LEAST_COOKIE_CHARACTERS <= len(value) <= _MOST_COOKIE_CHARACTERS
        and value.isascii()
        and value.replace("-", "").replace("_", "").isalnum()
    )
    return value if is_ours else None


class _SessionStream:
    """A stream that ends with its session, as if its browser had left."""

    __slots__ = (
        "_access",
        "_has_begun",
        "_has_session_ended",
        "_is_complete",
        "_receive",
        "_send",
        "_viewer",
    )

    def __init__(self, access: ConsoleAccess, viewer: Viewer, receive: Receive, send: Send) -> None:
        self._access = access
        self._viewer = viewer
        self._receive = receive
        self._send = send
        self._has_begun = self._is_complete = self._has_session_ended = False

    async def serve(self, app: ASGIApp, scope: Scope) -> None:
        """Serve a stream.

        Raises:
            CutDownloadError: It is a download, and its session ended first.
        """
        await app(scope, self._receive_or_end, self._send_noted)
        if self._has_session_ended and self._has_begun and not self._is_complete:
            if stream_kind(scope) == "download":
                raise CutDownloadError(
                    f"a download of {self._viewer.name} ended with the session,"
                    " or because the user's roles were changed"
                )
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send_noted(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._has_begun = True
        elif not message.get("more_body", False):
            self._is_complete = True
        await self._send(message)

    async def _receive_or_end(self) -> Message:
        left: asyncio.Task[Any] = asyncio.ensure_future(self._receive())
        ended = asyncio.create_task(self._session_end())
        try:
            await asyncio.wait({left, ended}, return_when=asyncio.FIRST_COMPLETED)
            if left.done():
                message: Message = left.result()
                return message
            self._has_session_ended = True
            return {"type": "http.disconnect"}
        finally:
            left.cancel()
            ended.cancel()
            await asyncio.wait({left, ended})

    async def _session_end(self) -> None:
        """Wait until the session ends or its user's roles change."""
        viewer = self._viewer
        assert viewer.session is not None
        grants = viewer.grants
        while grants == viewer.grants:
            try:
                await asyncio.wait_for(viewer.session.ended.wait(), _CHECK_S)
            except TimeoutError:
                current = self._access.viewer_of_cookie(
                    viewer.cookie, viewer.address, is_used=False
                )
                grants = current.grants
            else:
                break
