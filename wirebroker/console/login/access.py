"""The users of the console: those of a file, programs with tokens, or everyone on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.base.threads import Work, in_thread
from wirebroker.console.login import password_hashes
from wirebroker.console.login.access_tokens import access_token_hash, check_token_hash
from wirebroker.console.login.attempt_limit import AttemptLimit
from wirebroker.console.login.credential_file import CredentialFile
from wirebroker.console.login.form_tokens import FormTokens
from wirebroker.console.login.grants import ADMIN_EVERYWHERE, NO_GRANTS
from wirebroker.console.login.sessions import LoginSessions
from wirebroker.console.login.viewer import Viewer

if TYPE_CHECKING:
    from pathlib import Path

    from wirebroker.base.clock import Clock
    from wirebroker.console.login.credential_file import Credential

# A check of a password takes up to 64 MiB: a single thread makes them, and few wait.
_MOST_WAITING_LOGINS: Final = 16


class LoginError(Exception):
    """A login that is refused; the message is for the user.

    Attributes:
        status: The HTTP status.
        retry_s: When to try again; 0 if name or password were checked and are wrong.
        user: The user whose password is wrong, for the audit log; None if there is no such user.
        locks_out: Whether the address is locked out because of this attempt.
    """

    def __init__(
        self,
        message: str,
        status: int,
        retry_s: float = 0.0,
        *,
        user: str | None = None,
        locks_out: bool = False,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.retry_s = retry_s
        self.user = user
        self.locks_out = locks_out


class ConsoleAccess:
    """Decides who a request's user is.

    Attributes:
        form_tokens: The tokens of forms.
        requires_login: Whether pages need a login; otherwise everyone here is admin.
        has_programs: Whether there are tokens of the HTTP interface.
    """

    __slots__ = (
        "_absent_hash",
        "_limit",
        "_programs",
        "_sessions",
        "_users",
        "_waiting",
        "form_tokens",
    )

    def __init__(self, clock: Clock, users: Path | None = None, tokens: Path | None = None) -> None:
        """Read the files; raises CredentialError."""
        self.form_tokens = FormTokens()
        self._sessions = LoginSessions(clock)
        self._limit = AttemptLimit(clock)
        self._users = (
            None if users is None else CredentialFile(users, password_hashes.check_hash, clock)
        )
        self._programs = None if tokens is None else CredentialFile(tokens, check_token_hash, clock)
        # Checked for unknown names, so that the time does not reveal which users exist.
        self._absent_hash = "" if users is None else password_hashes.hash_of("")
        self._waiting = 0

    @property
    def requires_login(self) -> bool:
        """See the class."""
        return self._users is not None

    @property
    def has_programs(self) -> bool:
        """See the class."""
        return self._programs is not None

    # --- requests ---

    def viewer_of_cookie(self, cookie: str, address: str, *, is_used: bool) -> Viewer:
        """Return the user of a browser; `is_used` says that a user caused the request.

        Without a session, where one is needed, the viewer has no grants.
        """
        form_token = self.form_tokens.token_of(cookie)
        if self._users is None:
            return Viewer(None, ADMIN_EVERYWHERE, address, cookie, form_token)
        session = self._sessions.get(cookie, is_used=is_used)
        if session is None:
            return Viewer(None, NO_GRANTS, address, cookie, form_token)
        user = self._users.all().get(session.user)
        if user is None or user.secret != session.secret:
            self._sessions.end(cookie)
            return Viewer(None, NO_GRANTS, address, cookie, form_token)
        return Viewer(user.name, user.grants, address, cookie, form_token, session)

    def viewer_of_token(self, token: str, address: str) -> Viewer | None:
        """Return the program with a token, or None."""
        if self._programs is None:
            return None
        token_hash = access_token_hash(token)
        for program in self._programs.all().values():
            if program.secret == token_hash:
                return Viewer(program.name, program.grants, address, is_program=True)
        return None

    # --- logins ---

    async def log_in(self, name: str, password: str, address: str) -> str:
        """Check a password and begin a session; return its id.

        Raises:
            LoginError: It is refused. Unknown users and wrong passwords look the same.
        """
        assert self._users is not None
        if locked_s := self._limit.locked_s(address):
            raise LoginError(
                "There were too many failed logins from this address. Try again in a minute.",
                429,
                locked_s,
            )
        if self._waiting >= _MOST_WAITING_LOGINS:
            raise LoginError("Many users are logging in. Try again in a few seconds.", 503, 5.0)
        self._limit.begin(address)
        is_last = self._limit.locked_s(address) > 0
        user = self._users.all().get(name)
        if not await self._matches(user, password) or user is None:
            raise LoginError(
                "The name or the password is wrong.",
                403,
                user=None if user is None else name,
                locks_out=is_last,
            )
        self._limit.succeed(address)
        return self._sessions.begin(user.name, user.secret)

    async def _matches(self, user: Credential | None, password: str) -> bool:
        secret = self._absent_hash if user is None else user.secret
        if len(password.encode("utf-8", "replace")) > password_hashes.MOST_PASSWORD_BYTES:
            return False
        self._waiting += 1
        try:
            return await in_thread(Work.PASSWORDS, password_hashes.matches, secret, password)
        finally:
            self._waiting -= 1

    def log_out(self, viewer: Viewer) -> None:
        """End a viewer's session."""
        self._sessions.end(viewer.cookie)
