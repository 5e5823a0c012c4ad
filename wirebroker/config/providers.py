"""Config providers: `${provider:path:key}` in a setting means a value stored elsewhere.

    config.providers=file,env
    config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider
    ssl.key.password=${file:/run/secrets/tls.properties:password}
    sasl.jaas.config=… password="${env:ADMIN_PASSWORD}";

As in Kafka, placeholders of unlisted providers stay unchanged.

Source: Kafka's ConfigTransformer, FileConfigProvider, DirectoryConfigProvider,
EnvVarConfigProvider, AllowedPaths (KIP-297, 421, 887).
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Final, Protocol

from wirebroker.config.java.properties import parse_properties
from wirebroker.config.lookup import CONFIG_PROVIDERS
from wirebroker.config.rows.row import ConfigError, SecretText

if TYPE_CHECKING:
    from collections.abc import Mapping

_PACKAGE: Final = "org.apache.kafka.common.config.provider."
# Kafka's ConfigTransformer.DEFAULT_PATTERN.
_PLACEHOLDER: Final = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")


class ProviderFiles(Protocol):
    """Access to files."""

    def real_path(self, path: str) -> str:
        """Return the absolute path without links; raise OSError if there is no file."""
        ...

    def text(self, path: str) -> str:
        """Return the text of a regular file; raise OSError or ValueError."""
        ...


class _Provider(Protocol):
    def get(self, path: str, key: str) -> str:
        """Return a key's value; raise ConfigError (the end of a sentence) without one."""
        ...


def resolve(
    settings: Mapping[str, str], *, environment: Mapping[str, str], files: ProviderFiles
) -> dict[str, str]:
    """Replace the placeholders of all configured providers; settings with one become SecretText.

    Raises:
        ConfigError: A provider is not supported, or a placeholder cannot be resolved.
    """
    providers = _providers(settings, environment, files)
    return {
        name: text if name.startswith(CONFIG_PROVIDERS) else _resolved(name, text, providers)
        for name, text in settings.items()
    }


def _resolved(name: str, text: str, providers: Mapping[str, _Provider]) -> str:
    values: list[str] = []

    def value_of(match: re.Match[str]) -> str:
        provider = providers.get(match[1])
        if provider is None:
            return match[0]
        try:
            values.append(provider.get(match[2] or "", match[3]))
        except ConfigError as error:
            raise ConfigError(f"{name}: cannot resolve {match[0]}: {error}") from None
        return values[-1]

    replaced = _PLACEHOLDER.sub(value_of, text) if "${" in text else text
    return SecretText.of(replaced, tuple(values)) if values else text


def placeholder_in(text: str, settings: Mapping[str, str]) -> str | None:
    """Return the first placeholder of a configured provider, or None."""
    names = _names(settings) if "${" in text else []
    matches = (match for match in _PLACEHOLDER.finditer(text) if match[1] in names)
    return next((match[0] for match in matches), None)


def redacted(message: str, settings: Mapping[str, str], at_least: int = 1) -> str:
    """Replace providers' values of at least this length in a message by `(hidden)`."""
    secrets = {
        value.strip()
        for text in settings.values()
        if isinstance(text, SecretText)
        for value in text.values
    }
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= at_least:
            message = message.replace(secret, "(hidden)")
    return message


def _names(settings: Mapping[str, str]) -> list[str]:
    return [name.strip() for name in settings.get(CONFIG_PROVIDERS, "").split(",") if name.strip()]


def _providers(
    settings: Mapping[str, str], environment: Mapping[str, str], files: ProviderFiles
) -> dict[str, _Provider]:
    providers: dict[str, _Provider] = {}
    for name in _names(settings):
        key = f"{CONFIG_PROVIDERS}.{name}.class"
        class_name = settings.get(key, "").strip()
        params = f"{CONFIG_PROVIDERS}.{name}.param."
        match class_name.removeprefix(_PACKAGE):
            case "FileConfigProvider":
                providers[name] = _Files(_AllowedPaths(settings, params, files), files)
            case "DirectoryConfigProvider":
                providers[name] = _Directories(_AllowedPaths(settings, params, files), files)
            case "EnvVarConfigProvider":
                providers[name] = _Variables(
                    settings.get(f"{params}allowlist.pattern"), environment
                )
            case "":
                raise ConfigError(
                    f"{key} is missing: set the class of the provider {name}, which "
                    "config.providers names"
                )
            case _:
                raise ConfigError(
                    f"{key}={class_name} cannot be used: use FileConfigProvider,"
                    f" DirectoryConfigProvider or EnvVarConfigProvider of {_PACKAGE[:-1]}"
                )
    return providers


class _AllowedPaths:
    """The paths that a provider may read (`allowed.paths`); all if unset.

    As since Kafka 4.4, links are resolved before paths are compared.
    """

    def __init__(self, settings: Mapping[str, str], params: str, files: ProviderFiles) -> None:
        name = f"{params}allowed.paths"
        text = settings.get(name, "")
        self._files = files
        self._allowed = [self._allowed_path(name, path) for path in text.split(",")] if text else []

    def _allowed_path(self, name: str, path: str) -> str:
        if not posixpath.isabs(path):
            raise ConfigError(f"{name}: {path} is not an absolute path")
        try:
            return self._files.real_path(path)
        except OSError as error:
            raise ConfigError(f"{name}: {path}: {_reason(error)}") from None

    def check(self, path: str) -> str:
        if not path:
            raise ConfigError("the placeholder has no path")
        try:
            real_path = self._files.real_path(path)
        except (OSError, ValueError) as error:
            raise ConfigError(f"{path}: {_reason(error)}") from None
        if self._allowed and not any(_is_below(real_path, allowed) for allowed in self._allowed):
            raise ConfigError(f"{path} is not in allowed.paths")
        return real_path


def _is_below(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip("/") + "/")


class _Files:
    """FileConfigProvider: a key of a properties file."""

    def __init__(self, allowed: _AllowedPaths, files: ProviderFiles) -> None:
        self._allowed = allowed
        self._files = files

    def get(self, path: str, key: str) -> str:
        file = self._allowed.check(path)
        try:
            properties = parse_properties(_text(self._files, file))
        except ValueError as error:
            raise ConfigError(f"{file} is not a properties file: {error}") from None
        if key not in properties:
            raise ConfigError(f"{file} has no key {key}")
        return properties[key]


class _Directories:
    """DirectoryConfigProvider: a file in a directory."""

    def __init__(self, allowed: _AllowedPaths, files: ProviderFiles) -> None:
        self._allowed = allowed
        self._files = files

    def get(self, path: str, key: str) -> str:
        directory = self._allowed.check(path)
        if not key or "/" in key or key in {".", ".."}:
            raise ConfigError(f"{key} is not the name of a file in {directory}")
        return _text(self._files, f"{directory}/{key}")


class _Variables:
    """EnvVarConfigProvider: an environment variable."""

    def __init__(self, pattern: str | None, environment: Mapping[str, str]) -> None:
        try:
            self._allowed = re.compile(pattern or ".*", re.ASCII | re.DOTALL)
        except re.error as error:
            raise ConfigError(f"allowlist.pattern={pattern} cannot be used: {error}") from None
        self._environment = environment

    def get(self, path: str, key: str) -> str:
        if path:
            raise ConfigError("a placeholder of EnvVarConfigProvider must not have a path")
        if not self._allowed.fullmatch(key):
            raise ConfigError(f"allowlist.pattern does not match {key}")
        if key not in self._environment:
            raise ConfigError(f"the environment variable {key} is not set")
        return self._environment[key]


def _text(files: ProviderFiles, path: str) -> str:
    try:
        return files.text(path)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    return (error.strerror or "unreadable").lower() if isinstance(error, OSError) else str(error)
