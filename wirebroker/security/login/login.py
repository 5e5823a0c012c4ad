"""SASL logins on connections that this process opens, before any other request.

Connections are replaced before their logins expire (connections.max.reauth.ms; net/client/node.py).

Source: Kafka's SaslClientAuthenticator; KIP-43, KIP-152, KIP-368; codecs/scram.py.
"""

from __future__ import annotations

import hmac
import secrets
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from wirebroker.base.threads import Work, in_thread
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, MalformedFrameError
from wirebroker.codecs.scram import (
    SCRAM_NUMBERS,
    client_final,
    client_first,
    parse_server_first,
    salted_password,
)
from wirebroker.net.client.errors import AuthenticationFailedError, error_name

if TYPE_CHECKING:
    from wirebroker.base.clock import Clock
    from wirebroker.config.security.outgoing import Login
    from wirebroker.net.client.connection import PeerConnection
    from wirebroker.security.login.kerberos_login import KerberosLogin
    from wirebroker.security.tokens.own_tokens import ClientTokens

# Kafka's clients use 85 to 95 %.
_USED_OF_LIFETIME: Final = 0.85


class SaslLogin:
    """A handshake of net/client that authenticates this process.

    Raises:
        ConfigError: A required library is missing.
    """

    __slots__ = ("_kerberos", "_login", "_tokens")

    def __init__(self, login: Login, clock: Clock) -> None:
        self._login = login
        self._tokens: ClientTokens | None = None
        if login.oauth is not None:
            from wirebroker.security.tokens.own_tokens import ClientTokens  # noqa: PLC0415 - if asked for

            self._tokens = ClientTokens(login.oauth, clock)
        self._kerberos: KerberosLogin | None = None
        if login.kerberos is not None:
            from wirebroker.security.login.kerberos_login import KerberosLogin  # noqa: PLC0415 - if asked

            self._kerberos = KerberosLogin(login.kerberos)

    async def __call__(self, connection: PeerConnection) -> None:
        """Authenticate.

        Raises:
            AuthenticationFailedError: The peer refuses, or its own proof is wrong.
            PeerError: The request failed.
        """
        login = self._login
        answer = await connection.request(ApiKey.SASL_HANDSHAKE, {"mechanism": login.mechanism})
        if answer.error_code:
            offered = ", ".join(map(str, answer.mechanisms))
            reason = f"it offers {offered or 'no mechanism'}, not {login.mechanism}"
            raise AuthenticationFailedError(str(connection.address), reason)
        last = await self._log_in(connection)
        lifetime_ms = getattr(last, "session_lifetime_ms", 0)
        if lifetime_ms > 0:
            connection.ends_after(lifetime_ms / 1000 * _USED_OF_LIFETIME)

    async def _log_in(self, connection: PeerConnection) -> Any:
        login = self._login
        if self._kerberos is not None:
            return await self._kerberos.log_in(connection, partial(self._send, connection))
        if self._tokens is not None:
            return await self._show_token(connection, self._tokens)
        number = SCRAM_NUMBERS.get(login.mechanism)
        if number is not None:
            return await self._prove(connection, number)
        text = f"\0{login.user}\0{login.password}"
        return await self._send(connection, text.encode())

    async def _show_token(self, connection: PeerConnection, tokens: ClientTokens) -> Any:
        from wirebroker.security.tokens.own_tokens import NoTokenError  # noqa: PLC0415 - it is there

        assert self._login.oauth is not None, "a token login has OAuth settings"
        try:
            token = await tokens.token()
        except NoTokenError as error:
            raise AuthenticationFailedError(str(connection.address), str(error)) from None
        pairs = "".join(f"{name}={value}\x01" for name, value in self._login.oauth.extensions)
        last = await self._send(connection, f"n,,\x01auth=Bearer {token}\x01{pairs}\x01".encode())
        if last.auth_bytes:  # the reason; the error follows
            await self._send(connection, b"\x01")
            reason = "it rejects our token without an error code"
            raise AuthenticationFailedError(str(connection.address), reason)
        return last

    async def _prove(self, connection: PeerConnection, number: int) -> Any:
        nonce = secrets.token_urlsafe(24)
        first = client_first(self._login.user, nonce, by_token=self._login.by_token)
        answer = await self._send(connection, b"n,," + first.encode())
        try:
            challenge = parse_server_first(bytes(answer.auth_bytes), nonce)
        except MalformedFrameError as error:
            raise AuthenticationFailedError(str(connection.address), str(error)) from None
        arguments = (number, self._login.password, challenge.salt, challenge.iterations)
        salted = await in_thread(Work.CODING, salted_password, *arguments)
        proof = client_final(number, salted, first, challenge)
        last = await self._send(connection, proof.message)
        if not hmac.compare_digest(bytes(last.auth_bytes).partition(b",")[0], proof.answer):
            reason = "its SCRAM signature is wrong: it does not know our password"
            raise AuthenticationFailedError(str(connection.address), reason)
        return last

    async def _send(self, connection: PeerConnection, message: bytes) -> Any:
        answer = await connection.request(ApiKey.SASL_AUTHENTICATE, {"auth_bytes": message})
        if answer.error_code == ErrorCode.NONE:
            return answer
        error_message = answer.error_message or error_name(answer.error_code)
        reason = f"it rejects {self._login.user} with {self._login.mechanism}: {error_message}"
        raise AuthenticationFailedError(str(connection.address), reason)
