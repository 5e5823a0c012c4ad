"""Kerberos, by the system's GSS library: the door of `gssapi` (pip install 'wirebroker[gssapi]').

Calls read files (keytab, tickets, what was seen before: a message is taken once) and may ask the
servers of a realm: they are for threads. What a message holds is checked by the library; here its
size has a bound.

Source: RFC 4121, RFC 4752; Kafka's KerberosError says which faults pass by themselves.
"""

from __future__ import annotations

import importlib
import itertools
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.config.rows.row import ConfigError
from wirebroker.config.sources.regular_file import check_regular

if TYPE_CHECKING:
    from wirebroker.config.security.kerberos import KerberosKeys

# Tickets with all that Windows may put into them end before this.
_LONGEST_TOKEN_BYTES: Final = 64 << 10
# Of krb5's error table: a client, or a ticket, that is not valid yet.
_FIRST_ERROR: Final = -1_765_328_384
_PASSING: Final = frozenset(_FIRST_ERROR + number for number in (21, 33))
# A text: re compiles it at its first use and keeps it.
_MINOR: Final = r"(?s).*Minor \(-?\d+\): "
# Of caches in memory, which each login has for itself.
_cache_numbers: Final = itertools.count(1)


class KerberosError(Exception):
    """Kerberos says no.

    Attributes:
        passes: Whether the same client may succeed when it tries again.
    """

    def __init__(self, why: str, *, passes: bool = False) -> None:
        super().__init__(why)
        self.passes = passes


class KerberosPeer(NamedTuple):
    """Who the other side is, once that is known.

    Attributes:
        name: Its principal, `alice@REALM`.
        answer: The message that it is sent last, maybe empty.
    """

    name: str
    answer: bytes


class Acceptor:
    """The key of a listener, by which its clients are checked."""

    __slots__ = ("_credentials", "_gssapi", "_keys", "default_realm")

    def __init__(self, keys: KerberosKeys) -> None:
        """Begin without the key: `load`, or the first client, has it read."""
        self._keys = keys
        self._gssapi: Any = None
        self._credentials: Any = None
        # That of names without one; known when the key is.
        self.default_realm = ""

    def load(self) -> None:
        """Read the key.

        Raises:
            ConfigError: It cannot be used, or what reads it is missing.
        """
        keys, gssapi = self._keys, _library()
        name = gssapi.NameType.kerberos_principal
        _check_keytab(keys.keytab)
        try:
            credentials = gssapi.Credentials(
                name=gssapi.Name(keys.principal, name),
                usage="accept",
                mechs=[gssapi.MechType.kerberos],
                store={"keytab": f"FILE:{keys.keytab}"},
            )
            realm = gssapi.Name("nobody", name).canonicalize(gssapi.MechType.kerberos)
        except gssapi.exceptions.GSSError as error:
            raise ConfigError(
                f"the key of {keys.principal} in {keys.keytab} cannot be used: {_said(error)}"
            ) from None
        self.default_realm = str(realm).partition("@")[2]
        self._gssapi, self._credentials = gssapi, credentials

    def begin(self) -> AcceptedContext:
        """Begin with a client.

        Raises:
            KerberosError: There is no key.
        """
        if self._credentials is None:
            try:
                self.load()
            except ConfigError as error:
                raise KerberosError(str(error), passes=True) from None
        return AcceptedContext(self._gssapi, self._credentials)


class AcceptedContext:
    """One client's way to be known."""

    __slots__ = ("_context", "_credentials", "_gssapi")

    def __init__(self, gssapi: Any, credentials: Any) -> None:
        self._gssapi = gssapi
        self._credentials = credentials
        self._context: Any = None

    def take(self, token: bytes) -> bytes | KerberosPeer:
        """Take the client's next message; return the answer, or who it is.

        Raises:
            KerberosError: It is refused.
        """
        _check_size(token)
        try:
            # The raw call: the other one keeps an error until the next.
            done = self._gssapi.raw.accept_sec_context(token, self._credentials, self._context)
            self._context = done.context
            answer = done.token or b""
            if done.more_steps:
                return answer
            name = self._gssapi.raw.display_name(done.initiator_name, False).name
            return KerberosPeer(name.decode(errors="replace"), answer)
        except self._gssapi.exceptions.GSSError as error:
            raise _refused(error) from None

    def wrap(self, message: bytes) -> bytes:
        """Return a message with a proof that we sent it.

        Raises:
            KerberosError: The ticket has expired meanwhile.
        """
        try:
            wrapped: bytes = self._gssapi.raw.wrap(self._context, message, False).message
        except self._gssapi.exceptions.GSSError as error:
            raise _refused(error) from None
        return wrapped

    def unwrap(self, token: bytes) -> bytes:
        """Return a message of which it is proved who sent it.

        Raises:
            KerberosError: It is not.
        """
        _check_size(token)
        try:
            message: bytes = self._gssapi.raw.unwrap(self._context, token).message
        except self._gssapi.exceptions.GSSError as error:
            raise _refused(error) from None
        return message


class Initiator:
    """Our own identity, with which we log in elsewhere."""

    __slots__ = ("_cache", "_gssapi", "_keys")

    def __init__(self, keys: KerberosKeys) -> None:
        """Begin without tickets.

        Raises:
            ConfigError: What gets them is missing.
        """
        self._gssapi = _library()
        self._keys = keys
        self._cache = f"MEMORY:wirebroker-{next(_cache_numbers)}"

    def begin(self, host: str) -> InitiatedContext:
        """Begin with a server; asks the realm for tickets, if there are none.

        Raises:
            KerberosError: It gives none.
        """
        gssapi = self._gssapi
        try:
            _check_keytab(self._keys.keytab)
            target = gssapi.Name(
                f"{self._keys.service_name}@{host}", gssapi.NameType.hostbased_service
            )
            return InitiatedContext(gssapi, self._credentials(), target)
        except ConfigError as error:
            raise KerberosError(str(error)) from None
        except gssapi.exceptions.GSSError as error:
            raise _refused(error) from None

    def _credentials(self) -> Any:
        gssapi, keys = self._gssapi, self._keys
        store: dict[str, str] | None = None
        if keys.keytab is not None:
            store = {"client_keytab": f"FILE:{keys.keytab}", "ccache": self._cache}
        elif keys.ticket_cache is not None:
            store = {"ccache": keys.ticket_cache}
        name = None
        if keys.principal:
            name = gssapi.Name(keys.principal, gssapi.NameType.kerberos_principal)
        mechanisms = [gssapi.MechType.kerberos]
        return gssapi.Credentials(name=name, usage="initiate", mechs=mechanisms, store=store)


class InitiatedContext:
    """Our way to be known by one server."""

    __slots__ = ("_context", "_credentials", "_gssapi", "_target", "is_known")

    def __init__(self, gssapi: Any, credentials: Any, target: Any) -> None:
        self._gssapi = gssapi
        self._credentials = credentials
        self._target = target
        self._context: Any = None
        # Whether both sides know each other.
        self.is_known = False

    def take(self, token: bytes | None) -> bytes:
        """Take the server's message, None before there is one; return our next, maybe empty.

        Raises:
            KerberosError: It is not the server that it should be, or the realm does not know it.
        """
        gssapi = self._gssapi
        flag = gssapi.RequirementFlag
        try:
            done = gssapi.raw.init_sec_context(
                self._target,
                self._credentials,
                self._context,
                gssapi.MechType.kerberos,
                [flag.mutual_authentication, flag.integrity],
                input_token=token,
            )
        except gssapi.exceptions.GSSError as error:
            raise _refused(error) from None
        self._context = done.context
        self.is_known = not done.more_steps
        return done.token or b""

    def answer(self, token: bytes) -> bytes:
        """Return our choice of what the server offers: no more than to be known (RFC 4752).

        Raises:
            KerberosError: That is not among it.
        """
        _check_size(token)
        try:
            offered: bytes = self._gssapi.raw.unwrap(self._context, token).message
            if len(offered) < 4 or not offered[0] & 1:
                raise KerberosError("it offers no more than protection that Kafka has not")
            choice = bytes([1, 0, 0, 0])
            wrapped: bytes = self._gssapi.raw.wrap(self._context, choice, False).message
        except self._gssapi.exceptions.GSSError as error:
            raise _refused(error) from None
        return wrapped


def _library() -> Any:
    try:
        return importlib.import_module("gssapi")
    except (ImportError, OSError):  # the package, or the system's library below it
        raise ConfigError("GSSAPI needs Kerberos: pip install 'wirebroker[gssapi]'") from None


def _check_size(token: bytes) -> None:
    if len(token) > _LONGEST_TOKEN_BYTES:
        raise KerberosError(f"a message of {len(token)} bytes")
    if not token:
        raise KerberosError("an empty message")


def _refused(error: Any) -> KerberosError:
    minor = error.min_code
    # The library has it unsigned.
    signed = minor - (1 << 32) if minor >= 1 << 31 else minor
    return KerberosError(_said(error), passes=signed in _PASSING)


def _check_keytab(keytab: str | None) -> None:
    """Refuse what the library would wait for: it opens whatever stands there.

    Raises:
        ConfigError: It is no regular file, or cannot be read.
    """
    if keytab is None:
        return
    try:
        check_regular(keytab)
    except OSError as error:
        raise ConfigError(f"the keytab {keytab} cannot be read: {error.strerror}") from None


def _said(error: Any) -> str:
    text = str(error)
    cause = text.partition(", Minor")[0] if "Minor (0)" in text else re.sub(_MINOR, "", text)
    return cause[:512]
