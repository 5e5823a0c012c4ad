"""Loading of settings: flags override the environment, this the file, the file the defaults."""

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

# Kafka's longest file has 30 KB.
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
    """Combine all settings and check them.

    All names in `flags` must be known. `data_directory` replaces log.dirs (a comma is part of the
    name), `host` and `port` those of the first listener. Without a file, the one-node profile
    (table.ONE_NODE_PROFILE) applies if `is_one_node`.

    Raises:
        ConfigError: The file cannot be read or a setting is invalid.
    """
    explicit_settings = {} if file is None else read_properties(file)
    explicit_settings |= settings_from_environment(environment)
    _check_names(explicit_settings, flags)
    explicit_settings |= flags
    if data_directory is not None:
        explicit_settings["log.dirs"] = data_directory
    settings = explicit_settings
    if file is None and is_one_node:
        settings = ONE_NODE_PROFILE | explicit_settings
        if "log.dir" in explicit_settings and "log.dirs" not in explicit_settings:
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
        from wirebroker.config.providers import redacted  # noqa: PLC0415

        raise ConfigError(redacted(str(error), settings)) from None


def without_placeholders(
    settings: dict[str, str], environment: Mapping[str, str]
) -> dict[str, str]:
    """Return settings with the placeholders of config providers replaced.

    Raises:
        ConfigError: A placeholder cannot be resolved.
    """
    if not settings.get(CONFIG_PROVIDERS):
        return settings
    from wirebroker.config.providers import resolve  # noqa: PLC0415

    return resolve(settings, environment=environment, files=LocalFiles())


def local_java_options(environment: Mapping[str, str]) -> JavaOptions:
    """Return the Java system properties of an environment, with their JAAS file."""
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
    """See providers.ProviderFiles."""

    def real_path(self, path: str) -> str:
        """See ProviderFiles."""
        return os.path.realpath(path, strict=True)

    def text(self, path: str) -> str:
        """See ProviderFiles."""
        return _bytes_of(path).decode()


def _bytes_of(path: str) -> bytes:
    from wirebroker.config.sources.regular_file import read_regular  # noqa: PLC0415

    return read_regular(path, _MOST_BYTES)


def _check_names(explicit_settings: Mapping[str, str], flags: Mapping[str, str]) -> None:
    """Reject unknown names that other programs cannot use: flags, and names with `wirebroker.`."""
    for name in sorted(flags):
        if not is_known(name):
            raise ConfigError(f"--set {with_hint(name)}: there is no such config")
    for name in sorted(explicit_settings):
        if name.startswith("wirebroker.") and not is_known(name):
            raise ConfigError(f"{with_hint(name)}: there is no such config")


def read_properties(file: Path) -> dict[str, str]:
    """Read a properties file; its bytes are Latin-1, as in Java.

    Raises:
        ConfigError: It cannot be read or has another format.
    """
    from wirebroker.config.java.properties import foreign_kind, parse_properties  # noqa: PLC0415

    try:
        with file.open("rb") as opened:
            text = opened.read(_MOST_BYTES + 1).decode("latin-1")
    except IsADirectoryError:
        raise ConfigError(f"{file} is a directory: give the properties file") from None
    except OSError as error:
        reason = (error.strerror or "unreadable").lower()
        raise ConfigError(f"{file} cannot be read: {reason}") from None
    kind = "too long" if len(text) > _MOST_BYTES else foreign_kind(text)
    if kind is not None:
        raise ConfigError(f"{file} is {kind}, not a properties file: write lines of name=value")
    try:
        return parse_properties(text)
    except ValueError as error:
        raise ConfigError(f"{file} cannot be read: {error}") from None


def _with_address(
    settings: Mapping[str, str], host: str | None, port: int | None
) -> dict[str, str]:
    """Return the changed settings; an advertised listener with the old port gets the new one."""
    row = BROKER_ROWS["listeners"]
    items = row.parse(settings.get("listeners", row.default or ""))
    assert isinstance(items, tuple), "listeners is a list"
    controllers = settings.get("controller.listener.names", "").upper().replace(" ", "").split(",")
    addresses = parse_addresses("listeners", items)
    first = next((name for name in addresses if name not in controllers), "PLAINTEXT")
    old_host, old_port = addresses.get(first, ("", 9092))
    new_host = old_host if host is None else host.strip("[]")
    host_text = f"[{new_host}]" if ":" in new_host else new_host
    replaced = f"{first}://{host_text}:{old_port if port is None else port}"
    other_items = [item for item in items if not item.upper().startswith(f"{first}://")]
    changed = {"listeners": ",".join([replaced, *other_items])}
    advertised = settings.get("advertised.listeners")
    if advertised is not None and port is not None:
        old_address = re.compile(rf"(\s*{re.escape(first)}://.*:){old_port}\s*", re.IGNORECASE)
        changed["advertised.listeners"] = ",".join(
            old_address.sub(rf"\g<1>{port}", item) if old_address.fullmatch(item) else item
            for item in advertised.split(",")
        )
    return changed
