"""Files of users and of tokens: a line `NAME:HASH:ROLE[@CLUSTER],…` for each.

Empty lines, and lines that begin with `#`, are ignored. A file is read again when it changes, so
users and roles can be changed while the console runs.
"""

from __future__ import annotations

import logging
import os
import re
import tempfile
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.console.login.grants import Grants, grants_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from wirebroker.base.clock import Clock

logger = logging.getLogger("wirebroker")

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_MOST_BYTES: Final = 256 << 10
_MOST_LINES: Final = 2000
# The file's state is checked at most this often.
_CHECK_S: Final = 1.0


class Credential(NamedTuple):
    """A user or token.

    Attributes:
        name: Letters, digits, `.`, `_`, `@` and `-`; at most 64.
        secret: The hash of the password or token.
        grants: Its roles.
    """

    name: str
    secret: str
    grants: Grants


class CredentialError(ValueError):
    """A file of users or tokens that cannot be used; the message names it and the line."""


def checked_name(name: str) -> str:
    """Return a valid name.

    Raises:
        CredentialError: It has other characters, or is too long.
    """
    if not _NAME.fullmatch(name):
        raise CredentialError(
            f"{name[:80]!r} is not a name: use up to 64 letters, digits, and . _ @ -"
        )
    return name


def read_credentials(path: Path, check: Callable[[str], None]) -> dict[str, Credential]:
    """Read a file.

    Args:
        path: The file.
        check: Raises ValueError if a hash has another form.

    Raises:
        CredentialError: It has another form, or cannot be read.
    """
    try:
        with path.open("rb") as content:
            data = content.read(_MOST_BYTES + 1)
    except OSError as error:
        raise CredentialError(f"{path} cannot be read: {error.strerror or error}") from None
    lines = data.decode("utf-8", "replace").splitlines()
    if len(data) > _MOST_BYTES or len(lines) > _MOST_LINES:
        raise CredentialError(
            f"{path} is too large: the limits are {_MOST_BYTES} bytes and {_MOST_LINES} lines"
        )
    credentials: dict[str, Credential] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            _add(credentials, _credential(line, check))
        except ValueError as error:
            raise CredentialError(f"line {number} of {path} cannot be used: {error}") from None
    return credentials


def _add(credentials: dict[str, Credential], credential: Credential) -> None:
    if credential.name in credentials:
        raise ValueError(f"{credential.name} is already in the file")
    credentials[credential.name] = credential


def _credential(line: str, check: Callable[[str], None]) -> Credential:
    parts = line.strip().split(":")
    if len(parts) != 3:
        raise ValueError("write NAME:HASH:ROLE")
    name, secret, roles = (part.strip() for part in parts)
    check(secret)
    return Credential(checked_name(name), secret, grants_of(roles))


def write_credentials(path: Path, credentials: Iterable[Credential]) -> None:
    """Replace a file atomically; only its owner may read a new one. Comments are not kept.

    Owner, group and mode stay, as far as this user may set them: the console may be another user.

    Raises:
        CredentialError: It cannot be written.
    """
    lines = [f"{row.name}:{row.secret}:{row.grants.text()}\n" for row in credentials]
    new: Path | None = None
    try:
        existing = path.stat() if path.exists() else None
        descriptor, name = tempfile.mkstemp(prefix=f"{path.name}.", suffix=".new", dir=path.parent)
        new = path.parent / name
        with os.fdopen(descriptor, "w", encoding="utf-8") as out:
            if existing is not None:
                _keep_access(descriptor, existing)
            out.writelines(lines)
            out.flush()
            os.fsync(descriptor)
        new.replace(path)
    except OSError as error:
        if new is not None:
            new.unlink(missing_ok=True)
        raise CredentialError(f"{path} cannot be written: {error.strerror or error}") from None


def _keep_access(descriptor: int, existing: os.stat_result) -> None:
    mode = existing.st_mode & 0o777
    try:
        os.fchown(descriptor, existing.st_uid, existing.st_gid)
    except PermissionError:
        try:
            os.fchown(descriptor, -1, existing.st_gid)
        except PermissionError:
            mode &= ~0o070  # the rights of another group
    os.fchmod(descriptor, mode)


class CredentialFile:
    """A file of users or tokens, read again when it changes.

    If a changed file cannot be used, the last usable content still applies, and the log says why.
    """

    __slots__ = ("_by_name", "_check", "_checked_at", "_clock", "_path", "_state")

    def __init__(self, path: Path, check: Callable[[str], None], clock: Clock) -> None:
        """Read the file; raises CredentialError."""
        self._path = path
        self._check = check
        self._clock = clock
        self._state = self._file_state()
        self._by_name = read_credentials(path, check)
        self._checked_at = clock.monotonic()

    def all(self) -> Mapping[str, Credential]:
        """Return the current users or tokens by name."""
        now = self._clock.monotonic()
        if now - self._checked_at >= _CHECK_S:
            self._checked_at = now
            self._read_if_changed()
        return self._by_name

    def _read_if_changed(self) -> None:
        state = self._file_state()
        if state == self._state:
            return
        self._state = state
        try:
            self._by_name = read_credentials(self._path, self._check)
        except CredentialError as error:
            logger.error(  # noqa: TRY400 - a mistake in the file, not a bug
                "%s; the users and roles of before still apply", error
            )

    def _file_state(self) -> tuple[int, int, int] | None:
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_ino, status.st_size, status.st_mtime_ns
