"""Profiles: named clusters, each a file of Kafka client settings.

    ~/.config/wirebroker/profiles/NAME.properties        bootstrap.servers=…, security.protocol=…
    ~/.config/wirebroker/current                         the name of the profile in use

WIREBROKER_PROFILE overrides the profile in use; XDG_CONFIG_HOME applies.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_VARIABLE: Final = "WIREBROKER_PROFILE"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_SUFFIX: Final = ".properties"


def current_profile() -> str | None:
    """Return the name of the profile in use, or None.

    Raises:
        click.ClickException: It is unreadable: a verb must not use another cluster instead.
    """
    profile_name = os.environ.get(_VARIABLE)
    if profile_name:
        return profile_name
    file = f"{_folder_name()}/current"
    try:
        with open(file, encoding="utf-8") as content:  # noqa: PTH123 - see _folder
            return content.read().strip() or None
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise click.ClickException(f"{file} cannot be read: {error}") from None


def profile_names() -> list[str]:
    """Return all names, sorted."""
    return sorted(file.stem for file in _profiles().glob(f"*{_SUFFIX}"))


def profile_file(name: str) -> Path:
    """Return an existing profile's file, or raise click.UsageError."""
    file = _file(name)
    if not file.is_file():
        existing = ", ".join(profile_names()) or "none"
        raise click.UsageError(f"profile {name} does not exist; existing profiles: {existing}")
    return file


def write_profile(name: str, settings: Mapping[str, str]) -> Path:
    """Write a profile, readable only by its owner."""
    file = _file(name)
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    new = file.with_suffix(".new")
    lines = [f"{key}={value.replace(chr(92), chr(92) * 2)}\n" for key, value in settings.items()]
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="latin-1") as out:
        out.writelines(lines)
    new.replace(file)
    return file


def use_profile(name: str | None) -> None:
    """Select an existing profile, or none."""
    file = _folder() / "current"
    if name is None:
        file.unlink(missing_ok=True)
        return
    profile_file(name)
    file.write_text(f"{name}\n", encoding="utf-8")


def delete_profile(name: str) -> None:
    """Delete a profile."""
    profile_file(name).unlink()
    current = _folder() / "current"
    if current.is_file() and current.read_text(encoding="utf-8").strip() == name:
        use_profile(None)


def _file(name: str) -> Path:
    if not _NAME.fullmatch(name):
        raise click.UsageError(f"{name} is not a profile name: use letters, digits, . _ and -")
    return _profiles() / f"{name}{_SUFFIX}"


def _profiles() -> Path:
    return _folder() / "profiles"


def _folder() -> Path:
    from pathlib import Path  # noqa: PLC0415 - a tenth of a verb's time; most have no profiles

    return Path(_folder_name())


def _folder_name() -> str:
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")  # noqa: PTH111
    return f"{base}/wirebroker"
