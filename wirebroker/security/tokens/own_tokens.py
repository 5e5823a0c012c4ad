"""The broker's own tokens (OAUTHBEARER): from a file, from a token server, or unsigned.

A server's token is shared for four fifths of its lifetime; a file is read each time. Temporary
failures of a server are retried. One thread requests a token for all waiting logins, in any event
loop, so a slow server delays neither other work nor a loop that closes (base/threads.py:
until_idle).

Source: Kafka's HttpJwtRetriever, FileJwtRetriever, ExpiringCredentialRefreshingLogin.
"""

from __future__ import annotations

import asyncio
import base64
import json
import math
import threading
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import quote_plus

from wirebroker.base.threads import Work, begin_in_thread, end_with_loop, in_thread
from wirebroker.codecs.errors import without_frames
from wirebroker.codecs.json_text import parse_json
from wirebroker.config.sources.regular_file import read_regular
from wirebroker.security.tokens.web import Ending, WebAddress, WebError, ask

if TYPE_CHECKING:
    from pathlib import Path

    from wirebroker.base.clock import Clock
    from wirebroker.config.security.oauth_login import OAuthLogin

# Default of sasl.login.refresh.window.factor.
_USED_OF_LIFETIME: Final = 0.8
_LONGEST_BYTES: Final = 64 << 10


class NoTokenError(Exception):
    """No token is available; the text contains no secret."""


class _TokenRequest:
    """A request to a server, in a thread."""

    __slots__ = ("_is_over", "ending")

    def __init__(self) -> None:
        self.ending = Ending()
        self._is_over = threading.Event()

    def pause(self, seconds: float) -> bool:
        """Wait before a retry; return whether the request was canceled."""
        return self._is_over.wait(seconds)

    def end(self) -> None:
        self._is_over.set()
        self.ending.end()


class ClientTokens:
    """The tokens of one login."""

    __slots__ = ("_clock", "_lock", "_login", "_token", "_until_ms", "_waiting")

    # While _waiting is not empty, one thread requests a token for all of them.

    def __init__(self, login: OAuthLogin, clock: Clock) -> None:
        self._login = login
        self._clock = clock
        self._lock = threading.Lock()
        self._waiting: list[Future[str]] = []
        self._token = ""
        self._until_ms = 0.0

    async def token(self) -> str:
        """Return a valid token.

        Raises:
            NoTokenError: There is none.
        """
        login = self._login
        if login.token_file is not None:
            return await in_thread(Work.OUR_TOKENS, _in_file, login.token_file)
        if login.token_url is None:
            return self._unsecured()
        answer: Future[str] = Future()
        with self._lock:
            if self._clock.now_ms() < self._until_ms:
                return self._token
            self._waiting.append(answer)
            is_first = len(self._waiting) == 1
        if is_first:
            asking = _TokenRequest()
            work = begin_in_thread(Work.OUR_TOKENS, self._answer_all, login.token_url, asking)
            end_with_loop(work, partial(self._give_up, asking))
        return await asyncio.wrap_future(answer)

    def _give_up(self, asking: _TokenRequest) -> None:
        """End a request, unless a login in another loop still waits for it."""
        with self._lock:
            is_awaited = not all(future.cancelled() for future in self._waiting)
        if not is_awaited:
            asking.end()

    def _answer_all(self, url: str, asking: _TokenRequest) -> None:
        token, until_ms = "", 0.0
        fault: Exception | None = None
        try:
            token = self._ask_until_answered(url, asking)
            until_ms = self._use_until_ms(token)
        except Exception as error:  # noqa: BLE001 - raised where it is waited for
            fault = without_frames(error)
        with self._lock:
            waiting, self._waiting = self._waiting, []
            self._token, self._until_ms = token, until_ms
        for future in waiting:
            if not future.set_running_or_notify_cancel():  # the login was canceled
                continue
            if fault is None:
                future.set_result(token)
            else:
                future.set_exception(fault)

    def _unsecured(self) -> str:
        now = self._clock.now_ms() / 1000
        claims = {"iat": now, "exp": now + self._login.lifetime_s, **parse_json(self._login.claims)}
        parts = (json.dumps(part).encode() for part in ({"alg": "none"}, claims))
        return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts) + "."

    def _ask_until_answered(self, url: str, asking: _TokenRequest) -> str:
        login = self._login
        end_s = self._clock.monotonic() + login.most_retry_ms / 1000
        pause_s = login.retry_ms / 1000
        while True:
            try:
                return self._ask(url, asking.ending)
            except WebError as error:
                is_last = not error.passes or self._clock.monotonic() + pause_s > end_s
                if is_last or asking.pause(pause_s):
                    raise NoTokenError(f"cannot get a token from {url}: {error}") from None
            pause_s *= 2

    def _ask(self, url: str, ending: Ending) -> str:
        login = self._login
        context = None
        if login.tls is not None:
            from wirebroker.security.tls.tls_contexts import client_context  # noqa: PLC0415 - if asked

            context = client_context(login.tls)
        proof = base64.b64encode(f"{login.client_id}:{login.client_secret}".encode()).decode()
        body = "grant_type=client_credentials"
        if login.scope:
            body += f"&scope={quote_plus(login.scope)}"
        headers = {
            "Authorization": f"Basic {proof}",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        address = WebAddress(url, context, login.connect_s, login.answer_s)
        answer = ask(address, headers=headers, body=body.encode(), ending=ending)
        try:
            parsed: Any = parse_json(answer)
        except ValueError:
            raise NoTokenError(f"the response of {url} is not JSON") from None
        fields = cast("dict[str, Any]", parsed) if isinstance(parsed, dict) else {}
        token = fields.get("access_token") or fields.get("id_token")
        if not isinstance(token, str):
            raise NoTokenError(f"the response of {url} has no token")
        return _sound(token.encode(errors="surrogatepass"), url)  # JSON allows lone surrogates

    def _use_until_ms(self, token: str) -> float:
        """Return the wall time until which a token is shared; 0 if its expiry is unknown."""
        now_ms = self._clock.now_ms()
        try:
            part = token.split(".")[1]
            claims: Any = parse_json(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
            left_ms = float(claims["exp"]) * 1000 - now_ms
        except (ValueError, OverflowError, IndexError, KeyError, TypeError):
            return 0.0
        if not math.isfinite(left_ms):  # Python's JSON accepts NaN
            return 0.0
        return now_ms + left_ms * _USED_OF_LIFETIME


def _in_file(path: Path) -> str:
    try:
        content = read_regular(path, _LONGEST_BYTES)
    except OSError as error:
        raise NoTokenError(f"{path} cannot be read: {error.strerror or error}") from None
    return _sound(content, str(path))


def _sound(content: bytes, source: str) -> str:
    text = content.decode("latin-1").strip()
    if not text or len(text) > _LONGEST_BYTES or not text.isascii() or len(text.split()) != 1:
        raise NoTokenError(f"{source} does not contain a token")
    return text
