"""GSSAPI (RFC 4752), the server's side: Kerberos messages, then the choice of protection.

The ticket names the user; an authorization id is ignored, as in Kafka.

Source: Kafka's SaslServerAuthenticator, SaslServerCallbackHandler; the JDK's GssKrb5Server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.config.security.kerberos_names import NoUserError, user_of
from wirebroker.security.sasl.kerberos import KerberosError, KerberosPeer
from wirebroker.security.sasl.mechanisms import NotProvedError

if TYPE_CHECKING:
    from wirebroker.config.security.kerberos_names import KerberosRule
    from wirebroker.security.sasl.kerberos import AcceptedContext, Acceptor

# No protection of further messages (that is left to TLS). Then the size that Java sends.
_OFFER: Final = b"\x01\x01\x00\x00"


class GssapiMechanism:
    """GSSAPI: a Kerberos ticket."""

    __slots__ = ("_acceptor", "_context", "_has_offered", "_peer", "_rules", "user")

    is_for_thread = True

    def __init__(self, acceptor: Acceptor, rules: tuple[KerberosRule, ...]) -> None:
        self._acceptor = acceptor
        self._context: AcceptedContext | None = None
        self._rules = rules
        self._peer: str | None = None
        self._has_offered = False
        self.user: str | None = None

    def step(self, message: bytes) -> bytes:
        """Continue Kerberos, then send the offer, then check the choice."""
        try:
            context = self._context = self._context or self._acceptor.begin()
            if self._peer is None:
                return self._take(context, message)
            if not self._has_offered:
                if message:
                    raise NotProvedError("unexpected message")
                return self._offer(context)
            _check_choice(context.unwrap(message))
            self.user = user_of(self._peer, self._rules, self._acceptor.default_realm)
        except KerberosError as error:
            raise NotProvedError(str(error), passes=error.passes) from None
        except NoUserError as error:
            raise NotProvedError(str(error)) from None
        return b""

    def _take(self, context: AcceptedContext, message: bytes) -> bytes:
        result = context.take(message)
        if not isinstance(result, KerberosPeer):
            return result
        self._peer = result.name
        return result.answer or self._offer(context)

    def _offer(self, context: AcceptedContext) -> bytes:
        self._has_offered = True
        return context.wrap(_OFFER)


def _check_choice(choice: bytes) -> None:
    if len(choice) < 4:
        raise NotProvedError("it chose no protection level")
    if choice[0] != 1:
        raise NotProvedError("it chose a protection level that was not offered")
