"""Kerberos without a realm: each message contains the principal instead of a ticket.

alice@TEST.LOCAL        is accepted immediately; with `+` before it after another message
!why                    is refused; `~why`: is refused temporarily
?alice@TEST.LOCAL       is accepted once the acceptor may continue
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from tests.support.security.sasl_clients import send_token, shake_hands
from wirebroker.config.security.kerberos_names import kerberos_rules
from wirebroker.security.sasl.kerberos import KerberosError, KerberosPeer

if TYPE_CHECKING:
    from tests.support.protocol.raw_client import RawClient
    from wirebroker.config.security.kerberos import KerberosKeys

REALM = "TEST.LOCAL"
JAAS_LINE = (
    "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true "
    f'keyTab="/etc/kafka.keytab" principal="kafka/127.0.0.1@{REALM}";'
)
OFFER = b"wrapped:\x01\x01\x00\x00"
CHOICE = b"wrapped:\x01\x00\x00\x00"
RULES = kerberos_rules(("DEFAULT",))


class ScriptedAcceptor:
    """The broker's side, which obeys the message."""

    def __init__(self, keys: KerberosKeys | None = None) -> None:
        self.keys = keys
        self.default_realm = REALM
        self.threads: set[str] = set()
        self.asked: list[str] = []
        # Messages that begin with `?` wait until it is set.
        self.may_go_on = threading.Event()

    def load(self) -> None:
        assert self.keys is not None
        assert self.keys.keytab == "/etc/kafka.keytab"

    def begin(self) -> ScriptedContext:
        return ScriptedContext(self)


class ScriptedContext:
    def __init__(self, acceptor: ScriptedAcceptor) -> None:
        self._acceptor = acceptor
        self._more = ""

    def take(self, token: bytes) -> bytes | KerberosPeer:
        self._acceptor.threads.add(threading.current_thread().name)
        text = self._more or token.decode()
        self._acceptor.asked.append(text)
        if text[:1] == "?":
            text = text[1:]
            assert self._acceptor.may_go_on.wait(60)
        if text[:1] in {"!", "~"}:
            raise KerberosError(text[1:], passes=text[0] == "~")
        if text[:1] == "+":
            self._more = text[1:]
            return b"more"
        return KerberosPeer(text, b"")

    def wrap(self, message: bytes) -> bytes:
        return b"wrapped:" + message

    def unwrap(self, token: bytes) -> bytes:
        if not token.startswith(b"wrapped:"):
            raise KerberosError("the token is not wrapped")
        return token.removeprefix(b"wrapped:")


async def log_in_gssapi(client: RawClient, principal: str, choice: bytes = CHOICE) -> Any:
    await shake_hands(client, "GSSAPI")
    answer = await send_token(client, principal.encode())
    if answer.error_code:
        return answer
    assert answer.auth_bytes == OFFER
    return await send_token(client, choice)


class ScriptedInitiator:
    """The client's side for alice, with two messages; it refuses hosts outside the realm."""

    def __init__(self, keys: KerberosKeys) -> None:
        self.keys = keys

    def begin(self, host: str) -> ScriptedTicket:
        if self.keys.service_name != "kafka":
            raise KerberosError(f"{self.keys.service_name}/{host} is unknown")
        return ScriptedTicket()


class ScriptedTicket:
    def __init__(self) -> None:
        self.is_known = False

    def take(self, token: bytes | None) -> bytes:
        assert token in {None, b"more"}
        self.is_known = token is not None
        return b"" if self.is_known else f"+alice@{REALM}".encode()

    def answer(self, token: bytes) -> bytes:
        assert token == OFFER
        return CHOICE
