"""The configs of a resource before a change, and the lines of a plan about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.console.view.formats import duration_ms, size

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.client.configs.configs import ConfigEntry

HIDDEN: Final = "(hidden)"
_NOT_SET: Final = "not set"
# Sources of a value that a reset removes. A broker's own value hides the default of all brokers.
_REMOVED: Final = {
    "topic": {"DYNAMIC_TOPIC_CONFIG"},
    "this broker": {"DYNAMIC_BROKER_CONFIG"},
    "all brokers": {"DYNAMIC_BROKER_CONFIG", "DYNAMIC_DEFAULT_BROKER_CONFIG"},
    "client metrics": {"DYNAMIC_CLIENT_METRICS_CONFIG"},
    "group": {"DYNAMIC_GROUP_CONFIG"},
}


class ConfigState(NamedTuple):
    """The configs of a resource, by name.

    Attributes:
        current: Their values.
        known: All configs that such a resource can have, with synonyms.
    """

    current: Mapping[str, ConfigEntry]
    known: Mapping[str, ConfigEntry]

    def has(self, name: str, value: str | None) -> bool:
        """Return whether a config is set to a value already; None: whether it is not set."""
        config = self.current.get(name)
        if value is None:
            return config is None or not config.is_set
        return config is not None and config.is_set and config.value == value

    def line(self, name: str, value: str | None) -> str:
        """Return a line of the plan: the value before and after; None for a reset."""
        config = self.current.get(name)
        before = _NOT_SET if config is None else self._shown(name, config.value)
        source = "" if config is None or config.is_set else f" ({config.source})"
        if value is None:
            return f"{name}: {before} → {self._fallback(name)} (default)"
        return f"{name}: {before}{source} → {self._shown(name, value)}"

    def without_secrets(self, changes: Mapping[str, str | None]) -> dict[str, str | None]:
        """Return the changes, with secret values hidden."""
        return {
            name: HIDDEN if value is not None and self._is_secret(name) else value
            for name, value in changes.items()
        }

    def _is_secret(self, name: str) -> bool:
        """Return whether a value is hidden; of an unknown config it may be a secret."""
        config = self.known.get(name)
        return config is None or config.is_sensitive

    def _fallback(self, name: str) -> str:
        """Return the value after a reset, as far as it is known."""
        config, known = self.current.get(name), self.known.get(name)
        if config is None or known is None:
            return _NOT_SET
        removed = _REMOVED.get(config.source, set())
        values = [entry.value for entry in known.synonyms if entry.source not in removed]
        return self._shown(name, values[0]) if values else _NOT_SET

    def _shown(self, name: str, value: str | None) -> str:
        if self._is_secret(name):
            return HIDDEN
        if value is None:
            return _NOT_SET
        return f"{value}{_explained(name, value)}" if value else "(empty)"


def _explained(name: str, value: str) -> str:
    """Return a long number of ms or bytes in larger units."""
    if not (value.isascii() and value.isdigit() and 4 <= len(value) <= 15):
        return ""
    if name.endswith(".ms"):
        return f" = {duration_ms(int(value))}"
    return f" = {size(int(value))}" if name.endswith(".bytes") else ""
