"""The configs of a resource before a change, and the lines of a plan about them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.console.view.formats import duration_ms, size

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.client.configs.configs import ConfigEntry

HIDDEN: Final = "(hidden)"
_NOT_SET: Final = "not set"
# The source of a value that is set for all brokers.
_ALL_BROKERS: Final = "all brokers"
# Retention limits; a negative value means no limit.
_RETENTIONS: Final = {
    "retention.ms",
    "retention.bytes",
    "log.retention.ms",
    "log.retention.minutes",
    "log.retention.hours",
    "log.retention.bytes",
}
_POLICIES: Final = {"cleanup.policy", "log.cleanup.policy"}
# Sources of a value that a reset removes. A broker's own value hides the default of all brokers.
_REMOVED: Final = {
    "topic": {"DYNAMIC_TOPIC_CONFIG"},
    "this broker": {"DYNAMIC_BROKER_CONFIG"},
    _ALL_BROKERS: {"DYNAMIC_BROKER_CONFIG", "DYNAMIC_DEFAULT_BROKER_CONFIG"},
    "client metrics": {"DYNAMIC_CLIENT_METRICS_CONFIG"},
    "group": {"DYNAMIC_GROUP_CONFIG"},
}


class ConfigState(NamedTuple):
    """The configs of a resource, by name.

    Attributes:
        current: Their values.
        known: All configs that such a resource can have, with synonyms.
        is_one_broker: Whether the resource is a broker, which also has the configs of all brokers.
    """

    current: Mapping[str, ConfigEntry]
    known: Mapping[str, ConfigEntry]
    is_one_broker: bool = False

    def is_shared(self, name: str) -> bool:
        """Return whether a broker's config is set for all brokers, and not for this one."""
        config = self.current.get(name)
        return self.is_one_broker and config is not None and config.source == _ALL_BROKERS

    def _is_set(self, name: str) -> bool:
        config = self.current.get(name)
        return config is not None and config.is_set and not self.is_shared(name)

    def has(self, name: str, value: str | None) -> bool:
        """Return whether a config is set to a value already; None: whether it is not set."""
        if value is None or not self._is_set(name):
            return value is None and not self._is_set(name)
        return self.current[name].value == value

    def deletes_records(self, name: str, value: str | None) -> bool:
        """Return whether records may be deleted after a change that were kept before."""
        if name in _POLICIES:
            return self._value(name) != self._new_value(name, value)
        if name not in _RETENTIONS:
            return False
        before, after = self._value(name), self._new_value(name, value)
        return before is None or after is None or _limit(after) < _limit(before)

    def _value(self, name: str) -> str | None:
        config = self.current.get(name) or self.known.get(name)
        return None if config is None else config.value

    def _new_value(self, name: str, value: str | None) -> str | None:
        return self._fallback_value(name) if value is None else value

    def line(self, name: str, value: str | None) -> str:
        """Return a line of the plan: the value before and after; None for a reset."""
        config = self.current.get(name)
        before = _NOT_SET if config is None else self._shown(name, config.value)
        source = "" if config is None or self._is_set(name) else f" ({config.source})"
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
        """Return the text of the value after a reset, as far as it is known."""
        value = self._fallback_value(name)
        return _NOT_SET if value is None else self._shown(name, value)

    def _fallback_value(self, name: str) -> str | None:
        config, known = self.current.get(name), self.known.get(name)
        if config is None or known is None:
            return None
        removed = _REMOVED.get(config.source, set())
        values = [entry.value for entry in known.synonyms if entry.source not in removed]
        return values[0] if values else None

    def _shown(self, name: str, value: str | None) -> str:
        if self._is_secret(name):
            return HIDDEN
        if value is None:
            return _NOT_SET
        return f"{value}{_explained(name, value)}" if value else "(empty)"


def _limit(text: str) -> float:
    """Return a limit; of a text that the brokers refuse, the lowest."""
    try:
        limit = int(text)
    except ValueError:
        return 0
    return math.inf if limit < 0 else limit


def _explained(name: str, value: str) -> str:
    """Return a long number of ms or bytes in larger units."""
    if not (value.isascii() and value.isdigit() and 4 <= len(value) <= 15):
        return ""
    if name.endswith(".ms"):
        return f" = {duration_ms(int(value))}"
    return f" = {size(int(value))}" if name.endswith(".bytes") else ""
