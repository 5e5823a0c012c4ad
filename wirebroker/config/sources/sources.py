"""Where settings come from: flags over environment over file over defaults.

Without a file the one-node profile (table.ONE_NODE_PROFILE) stands under everything, so that
an unconfigured broker just works; with one, what it doesn't say is Kafka's default.

A leaf.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

from wirebroker.config.hints import is_known, with_hint
from wirebroker.config.java.java_options import ALLOWED_URLS, JavaOptions, java_options
from wirebroker.config.listeners.listeners import listeners_of, parse_addresses
from wirebroker.config.lookup import CONFIG_PROVIDERS
from wirebroker.config.rows.row import ConfigError, SecretText, with_secrets
from wirebroker.config.sources.environment import settings_from_environment
from wirebroker.config.table import BROKER_ROWS, ONE_NODE_PROFILE
from wirebroker.config.values import Config

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# Kafka's longest, with all that it knows, has 30 KB; what goes on for ever is no file of settings.
_MOST_BYTES: Final = 1 << 20


def load_config(
    *,
    file: Path | None,
    environment: Mapping[str, str],
    flags: Mapping[str, str],
    data_directory: str | None = None,
    host: str | None = None,
    port: int | None = None,
    is_one_node: bool = True,
) -> Config:
    """Put all settings together and check them.

    Args:
        file: A properties file; None for the one-node profile.
        environment: The process environment; its KAFKA_ variables count.
        flags: Settings from the command line, by name. All must be known.
        data_directory: Where data lies, instead of log.dirs; a comma is part of the name.
        host: Replaces the host of the first listener.
        port: Replaces the port of the first listener.
        is_one_node: Whether the one-node profile applies when there is no file.

    Raises:
        ConfigError: The file can't be read or a setting can't be used.
    """
    given = {} if file is None else read_properties(file)
    given |= settings_from_environment(environment)
    _check_names(given, flags)
    given |= flags
    if data_directory is not None:
        given["log.dirs"] = data_directory
    settings = given
    if file is None and is_one_node:
        settings = ONE_NODE_PROFILE | given
        if "log.dir" in given and "log.dirs" not in given:
            del settings["log.dirs"]
    settings = without_placeholders(settings, environment)
    java = local_java_options(environment)
    if java.allowed_urls is not None:
        settings = {ALLOWED_URLS: java.allowed_urls, **settings}
    try:
        return _checked(settings, java, data_directory=data_directory, host=host, port=port)
    except ConfigError as error:
        if not settings.get(CONFIG_PROVIDERS):
            raise
        from wirebroker.config.providers import redacted  # noqa: PLC0415 - few have them

        raise ConfigError(redacted(str(error), settings)) from None


def without_placeholders(
    settings: dict[str, str], environment: Mapping[str, str]
) -> dict[str, str]:
    """Return settings of a broker or a client with the values that config providers give.

    Raises:
        ConfigError: A placeholder of a configured provider cannot be resolved.
    """
    if not settings.get(CONFIG_PROVIDERS):
        return settings
    # A start without providers spares their module.
    from wirebroker.config.providers import resolve  # noqa: PLC0415

    return resolve(settings, environment=environment, files=LocalFiles())


def local_java_options(environment: Mapping[str, str]) -> JavaOptions:
    """Return the Java system properties of an environment, with the JAAS file that they name."""
    return java_options(environment, lambda path: _bytes_of(path).decode(errors="replace"))


def _checked(
    settings: dict[str, str],
    java: JavaOptions,
    *,
    data_directory: str | None,
    host: str | None,
    port: int | None,
) -> Config:
    if host is not None or port is not None:
        changed = _with_address(settings, host, port)
        hidden = [name for name in changed if isinstance(settings.get(name), SecretText)]
        settings |= with_secrets(changed, hidden)
    config = Config(settings, data_directory=data_directory, java_options=java)
    listeners_of(config)
    return config


class LocalFiles:
    """The files of this machine, as config providers read them."""

    def real_path(self, path: str) -> str:
        """Return an absolute path without links; raise OSError if there is no such file."""
        return os.path.realpath(path, strict=True)

    def text(self, path: str) -> str:
        """Return the text of a regular file, which is UTF-8.

        Raises:
            OSError: It cannot be opened, is no regular file, or is too long.
            ValueError: It is not UTF-8.
        """
        return _bytes_of(path).decode()


def _bytes_of(path: str) -> bytes:
    from wirebroker.config.sources.regular_file import read_regular  # noqa: PLC0415 - most starts read none

    return read_regular(path, _MOST_BYTES)


def _check_names(given: Mapping[str, str], flags: Mapping[str, str]) -> None:
    """Refuse names that cannot be meant for anybody else.

    A file or an environment may be shared with other programs; flags are for this one, and what
    begins with `wirebroker.` is as well.
    """
    for name in sorted(flags):
        if not is_known(name):
            raise ConfigError(f"--set {with_hint(name)}: there is no such config")
    for name in sorted(given):
        if name.startswith("wirebroker.") and not is_known(name):
            raise ConfigError(f"{with_hint(name)}: there is no such config")


def read_properties(file: Path) -> dict[str, str]:
    """Read a properties file; its bytes are Latin-1, as Java takes them.

    Raises:
        ConfigError: The file can't be read or isn't a properties file.
    """
    # A start without a file spares its patterns.
    from wirebroker.config.java.properties import foreign_kind, parse_properties  # noqa: PLC0415

    try:
        with file.open("rb") as opened:
            text = opened.read(_MOST_BYTES + 1).decode("latin-1")
    except IsADirectoryError:
        raise ConfigError(f"{file} is a directory: name the properties file in it") from None
    except OSError as error:
        reason = (error.strerror or "unreadable").lower()
        raise ConfigError(f"{file} cannot be read: {reason}") from None
    kind = "too long" if len(text) > _MOST_BYTES else foreign_kind(text)
    if kind is not None:
        raise ConfigError(f"{file} is {kind}, no properties file: write lines of name=value")
    try:
        return parse_properties(text)
    except ValueError as error:
        raise ConfigError(f"{file} cannot be read: {error}") from None


def _with_address(
    settings: Mapping[str, str], host: str | None, port: int | None
) -> dict[str, str]:
    """Return `listeners` with the first one's host and port replaced.

    Where clients were told the port that is replaced, they are told the new one.
    """
    row = BROKER_ROWS["listeners"]
    items = row.parse(settings.get("listeners", row.default or ""))
    assert isinstance(items, tuple), "listeners is a list"
    controllers = settings.get("controller.listener.names", "").upper().replace(" ", "").split(",")
    addresses = parse_addresses("listeners", items)
    first = next((name for name in addresses if name not in controllers), "PLAINTEXT")
    old_host, old_port = addresses.get(first, ("", 9092))
    new_host = old_host if host is None else host.strip("[]")
    shown = f"[{new_host}]" if ":" in new_host else new_host
    replaced = f"{first}://{shown}:{old_port if port is None else port}"
    others = [item for item in items if not item.upper().startswith(f"{first}://")]
    changed = {"listeners": ",".join([replaced, *others])}
    told = settings.get("advertised.listeners")
    if told is not None and port is not None:
        same = re.compile(rf"(\s*{re.escape(first)}://.*:){old_port}\s*", re.IGNORECASE)
        changed["advertised.listeners"] = ",".join(
            same.sub(rf"\g<1>{port}", item) if same.fullmatch(item) else item
            for item in told.split(",")
        )
    return changed
