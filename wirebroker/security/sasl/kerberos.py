"""Kerberos by the system's GSS library; the only import of `gssapi` (wirebroker[gssapi]).

Calls read files (keytab, tickets, replay cache) and may contact a realm's servers, so they need
threads. The library validates messages, except their size.

Source: RFC 4121, RFC 4752; Kafka's KerberosError for retriable errors.
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

_LONGEST_TOKEN_BYTES: Final = 64 << 10
# krb5 errors: a client or a ticket that is not valid yet.
_FIRST_ERROR: Final = -1_765_328_384
_PASSING: Final = frozenset(_FIRST_ERROR + number for number in (21, 33))
# A string, which re compiles at the first use.
_MINOR: Final = r"(?s).*Minor \(-?\d+\): "
# Each login has its own in-memory cache.
_cache_numbers: Final = itertools.count(1)


class KerberosError(Exception):
    """A Kerberos failure; `passes` if the same client may succeed later."""

    def __init__(self, reason: str, *, passes: bool = False) -> None:
        super().__init__(reason)
        self.passes = passes


class KerberosPeer(NamedTuple):
    """The authenticated peer: its principal, `alice@REALM`, and the last message to it."""

    name: str
    answer: bytes


class Acceptor:
    """The key of a listener, for the authentication of its clients."""

    __slots__ = ("_credentials", "_gssapi", "_keys", "default_realm")

    def __init__(self, keys: KerberosKeys) -> None:
        """Create it without the key, which `load` or the first client reads."""
        self._keys = keys
        self._gssapi: Any = None
        self._credentials: Any = None
        # Known after `load`.
        self.default_realm = ""

    def load(self) -> None:
        """Read the key.

        Raises:
            ConfigError: It cannot be used, or the library is missing.
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
                f"the key of {keys.principal} in {keys.keytab} cannot be used: {_error_text(error)}"
            ) from None
        self.default_realm = str(realm).partition("@")[2]
        self._gssapi, self._credentials = gssapi, credentials

    def begin(self) -> AcceptedContext:
        """Return the context of a new client.

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
    """The authentication of one client."""

    __slots__ = ("_context", "_credentials", "_gssapi")

    def __init__(self, gssapi: Any, credentials: Any) -> None:
        self._gssapi = gssapi
        self._credentials = credentials
        self._context: Any = None

    def take(self, token: bytes) -> bytes | KerberosPeer:
        """Process the client's next message; return the response, or the client.

        Raises:
            KerberosError: It is refused.
        """
        _check_size(token)
        try:
            # The wrapper would defer an error to the next call.
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
        """Return a message with an integrity code.

        Raises:
            KerberosError: The ticket has expired.
        """
        try:
            wrapped: bytes = self._gssapi.raw.wrap(self._context, message, False).message
        except self._gssapi.exceptions.GSSError as error:
            raise _refused(error) from None
        return wrapped

    def unwrap(self, token: bytes) -> bytes:
        """Verify a message and return its content.

        Raises:
            KerberosError: The verification failed.
        """
        _check_size(token)
        try:
            message: bytes = self._gssapi.raw.unwrap(self._context, token).message
        except self._gssapi.exceptions.GSSError as error:
            raise _refused(error) from None
        return message


class Initiator:
    """This node's identity for logins elsewhere.

    Raises:
        ConfigError: The library is missing.
    """

    __slots__ = ("_cache", "_gssapi", "_keys")

    def __init__(self, keys: KerberosKeys) -> None:
        self._gssapi = _library()
        self._keys = keys
        self._cache = f"MEMORY:wirebroker-{next(_cache_numbers)}"

    def begin(self, host: str) -> InitiatedContext:
        """Return a context for a server; gets tickets from the realm if there are none.

        Raises:
            KerberosError: The realm gives none.
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
    """The authentication to one server; `is_known` once both sides are authenticated."""

    __slots__ = ("_context", "_credentials", "_gssapi", "_target", "is_known")

    def __init__(self, gssapi: Any, credentials: Any, target: Any) -> None:
        self._gssapi = gssapi
        self._credentials = credentials
        self._target = target
        self._context: Any = None
        self.is_known = False

    def take(self, token: bytes | None) -> bytes:
        """Process the server's message, first None; return the next one, maybe empty.

        Raises:
            KerberosError: The server is another, or unknown to the realm.
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
        """Choose authentication only (RFC 4752).

        Raises:
            KerberosError: The server does not offer it.
        """
        _check_size(token)
        try:
            offered: bytes = self._gssapi.raw.unwrap(self._context, token).message
            if len(offered) < 4 or not offered[0] & 1:
                raise KerberosError("it offers only security layers, which Kafka does not support")
            choice = bytes([1, 0, 0, 0])
            wrapped: bytes = self._gssapi.raw.wrap(self._context, choice, False).message
        except self._gssapi.exceptions.GSSError as error:
            raise _refused(error) from None
        return wrapped


def _library() -> Any:
    try:
        return importlib.import_module("gssapi")
    except (ImportError, OSError):  # the package, or the system's library
        raise ConfigError("GSSAPI needs Kerberos: pip install 'wirebroker[gssapi]'") from None


def _check_size(token: bytes) -> None:
    if len(token) > _LONGEST_TOKEN_BYTES:
        raise KerberosError(f"a message of {len(token)} bytes is too long")
    if not token:
        raise KerberosError("an empty message")


def _refused(error: Any) -> KerberosError:
    minor = error.min_code
    # The library returns it unsigned.
    signed = minor - (1 << 32) if minor >= 1 << 31 else minor
    return KerberosError(_error_text(error), passes=signed in _PASSING)


def _check_keytab(keytab: str | None) -> None:
    """Refuse other than regular files: opening them would block the library."""
    if keytab is None:
        return
    try:
        check_regular(keytab)
    except OSError as error:
        raise ConfigError(f"the keytab {keytab} cannot be read: {error.strerror}") from None


def _error_text(error: Any) -> str:
    text = str(error)
    cause = text.partition(", Minor")[0] if "Minor (0)" in text else re.sub(_MINOR, "", text)
    return cause[:512]
