"""GSSAPI logins of the broker.

Source: Kafka's SaslClientAuthenticator; RFC 4752.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.base.threads import Work, in_thread
from wirebroker.net.client.errors import AuthenticationFailedError
from wirebroker.security.sasl.kerberos import Initiator, KerberosError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from wirebroker.config.security.kerberos import KerberosKeys
    from wirebroker.net.client.connection import PeerConnection


class KerberosLogin:
    """Logs in with a Kerberos ticket.

    Raises:
        ConfigError: The library is missing.
    """

    __slots__ = ("_initiator",)

    def __init__(self, keys: KerberosKeys) -> None:
        self._initiator = Initiator(keys)

    async def log_in(
        self, connection: PeerConnection, send: Callable[[bytes], Awaitable[Any]]
    ) -> Any:
        """Authenticate; return the peer's last response.

        Raises:
            AuthenticationFailedError: The peer or the realm refuses.
            PeerError: The request failed.
        """
        try:
            return await self._exchange(connection.address.host, send)
        except KerberosError as error:
            raise AuthenticationFailedError(str(connection.address), f"Kerberos: {error}") from None

    async def _exchange(self, host: str, send: Callable[[bytes], Awaitable[Any]]) -> Any:
        context = await in_thread(Work.OUR_LOGINS, self._initiator.begin, host)
        offer: bytes | None = None
        token: bytes | None = None
        while not context.is_known:
            message = await in_thread(Work.OUR_LOGINS, context.take, token)
            if message or not context.is_known:
                token = bytes((await send(message)).auth_bytes)
                offer = token if context.is_known else None
        # The server's offer comes with its last message, or in response to an empty one.
        if not offer:
            offer = bytes((await send(b"")).auth_bytes)
        return await send(await in_thread(Work.OUR_LOGINS, context.answer, offer))
