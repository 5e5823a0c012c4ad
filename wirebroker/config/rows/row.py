"""Row of the config table, and how its value is parsed.

As in Java, surrounding blanks are ignored, `+5` is a number and `1_0` is not, and a list is split
at commas. DescribeConfigs returns the parsed value in Java's format: `1e-4` as `1.0E-4`.

Source: Kafka's ConfigDef (types, ranges), KIP-226 (mutability).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

ConfigValue = bool | int | float | str | tuple[str, ...] | None

INT_RANGES: Final = {"int": 31, "long": 63, "short": 15}
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")
_DECIMAL_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?")


class ConfigError(Exception):
    """An invalid setting; the text is one sentence for the user."""


class StartError(Exception):
    """A cause outside the configuration that prevents the broker's start.

    Attributes:
        what: The failure ("port 9092 is in use").
        mend: The remedy ("stop the other process or give --port").
    """

    def __init__(self, what: str, mend: str) -> None:
        super().__init__(f"{what}: {mend}")
        self.what = what
        self.mend = mend


class SecretText(str):
    """The text of a setting with values of a config provider; it is never shown.

    Attributes:
        values: The values that replaced placeholders.
    """

    __slots__ = ("values",)

    values: tuple[str, ...]

    @classmethod
    def of(cls, text: str, values: tuple[str, ...]) -> SecretText:
        """Return a text with these secret values."""
        secret = cls(text)
        secret.values = values
        return secret


def with_secrets(settings: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """Return the settings, those with these names as secrets."""
    return {
        **settings,
        **{name: SecretText.of(settings[name], (settings[name],)) for name in names},
    }


class ConfigType(Enum):
    """A config's type, as numbered by DescribeConfigs."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class ConfigSource(IntEnum):
    """A value's source, as numbered by DescribeConfigs."""

    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    CLIENT_METRICS_CONFIG = 7
    GROUP_CONFIG = 8


class Mutability(Enum):
    """Whether and at which level AlterConfigs may change a broker config."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


class Effect(Enum):
    """The effect of a config, as in the column *read* of docs/configs.md."""

    READ = "yes"
    # Shown because every Kafka broker has it, but not read.
    SHOWN = "no"
    # Not read; DescribeConfigs shows it, AlterConfigs may change it, and in a file it causes a
    # warning.
    KEPT = "kept"


class OfListener(Enum):
    """How AlterConfigs may set one listener's own value (listener.name.<listener>.…)."""

    # For single brokers.
    PER_BROKER = "per-broker"
    # Also for all brokers; if the effect is READ, each listener's own value is read.
    CLUSTER_WIDE = "cluster-wide"
    # For single brokers; without a listener the config cannot be set.
    ONLY = "only"


@dataclass(slots=True, frozen=True, kw_only=True)
class ConfigRow:
    """One config.

    Attributes:
        default: Its text; None if unset.
        also: A number allowed outside the range.
        check: Returns what a value must be, or None if it is valid.
        mutability: Of broker configs; every topic config can be changed.
        at_most_doubles: Whether a change may at most double or halve it.
        classes: Java classes that AlterConfigs accepts, if the config names classes.
        asks: Whether a value other than the default or "" requires protection (protection.py).
        profile: The value without a configuration file.
        topic_name: The topic config whose default this broker config is.
        synonyms: Broker configs for the same setting, highest precedence first. For a topic row:
            those that give its default.
        internal: Shown by DescribeConfigs only if it is set.
    """

    name: str
    type: ConfigType
    default: str | None
    doc: str
    at_least: float | None = None
    at_most: float | None = None
    also: int | None = None
    choices: tuple[str, ...] = ()
    check: Callable[[ConfigValue], str | None] | None = None
    mutability: Mutability = Mutability.READ_ONLY
    effect: Effect = Effect.READ
    of_listener: OfListener = OfListener.PER_BROKER
    at_most_doubles: bool = False
    classes: tuple[str, ...] | None = None
    asks: bool = False
    profile: str | None = None
    topic_name: str | None = None
    synonyms: tuple[str, ...] = ()
    internal: bool = False
    has_secret: bool = False

    def parse(self, text: str) -> ConfigValue:
        """Parse the text of a value.

        Raises:
            ConfigError: The value has the wrong type or is out of range.
        """
        if isinstance(text, SecretText):
            return self._parse_secret(text)
        text = text.strip()
        value = self._read(text)
        requirement = self._number_wish(value) or self._choice_wish(value)
        if requirement is None and self.check is not None:
            requirement = self.check(value)
        if requirement is not None:
            raise ConfigError(f"{self.name}={self._shown(text)} cannot be used: {requirement}")
        return value

    def _parse_secret(self, text: SecretText) -> ConfigValue:
        try:
            return self.parse(str(text))
        except ConfigError:
            raise ConfigError(
                f"{self.name} cannot be used: the value of a config provider is not a valid "
                f"{self.type.name.lower()}"
            ) from None

    def default_value(self) -> ConfigValue:
        """Return the parsed default."""
        return None if self.default is None else self.parse(self.default)

    @property
    def is_sensitive(self) -> bool:
        """Whether the value is hidden."""
        return self.type is ConfigType.PASSWORD or self.has_secret

    def _shown(self, text: str) -> str:
        return "(hidden)" if self.is_sensitive else text

    def _read(self, text: str) -> ConfigValue:
        match self.type:
            case ConfigType.BOOLEAN:
                return self._read_boolean(text)
            case ConfigType.INT | ConfigType.LONG | ConfigType.SHORT:
                return self._read_whole_number(text)
            case ConfigType.DOUBLE:
                if not _DECIMAL_NUMBER.fullmatch(text):
                    raise ConfigError(f"{self.name}={text} cannot be used: it must be a number")
                return float(text.rstrip("dDfF"))
            case ConfigType.LIST:
                items = re.split(r"\s*,\s*", text) if text else ()
                return tuple(dict.fromkeys(items) if self.choices else items)
            case ConfigType.STRING | ConfigType.CLASS | ConfigType.PASSWORD:
                return text

    def _read_boolean(self, text: str) -> bool:
        if text.lower() not in ("true", "false"):
            raise ConfigError(f"{self.name}={text} cannot be used: it must be true or false")
        return text.lower() == "true"

    def _read_whole_number(self, text: str) -> int:
        bits = INT_RANGES[self.type.name.lower()]
        # 20 digits hold every 64-bit number; int() of a long text is slow.
        if _WHOLE_NUMBER.fullmatch(text) and len(text) <= 20:
            value = int(text)
            if -(1 << bits) <= value < 1 << bits:
                return value
        raise ConfigError(
            f"{self.name}={text[:40]} cannot be used: it must be a {bits + 1}-bit integer"
        )

    def _number_wish(self, value: ConfigValue) -> str | None:
        if isinstance(value, bool) or not isinstance(value, int | float) or value == self.also:
            return None
        unless = "" if self.also is None else f", or {self.also}"
        if self.at_least is not None and value < self.at_least:
            return f"it must be at least {self.at_least}{unless}"
        if self.at_most is not None and value > self.at_most:
            return f"it must be at most {self.at_most}{unless}"
        return None

    def _choice_wish(self, value: ConfigValue) -> str | None:
        if not self.choices:
            return None
        if isinstance(value, tuple):
            if any(item not in self.choices for item in value):
                return "it must be a list of " + ", ".join(self.choices)
        elif value not in self.choices:
            return "it must be one of " + ", ".join(self.choices)
        return None
