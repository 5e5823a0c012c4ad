"""Row of the config table: a config's name, type and range, and how its value is parsed.

Parsing follows Java: surrounding blanks are ignored, `+5` is a number and `1_0` is not, a list is
split at commas. DescribeConfigs returns the parsed value in Java's format: `1e-4` as `1.0E-4`.

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
        what: What failed ("port 9092 is in use").
        mend: How to fix it ("stop the other process or give --port").
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
        """Return a text that contains these secret values."""
        secret = cls(text)
        secret.values = values
        return secret


def with_secrets(settings: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """Return settings in which those with these names are secret."""
    return {
        **settings,
        **{name: SecretText.of(settings[name], (settings[name],)) for name in names},
    }


class ConfigType(Enum):
    """The type of a config, numbered as in DescribeConfigs responses."""

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
    """The source of a value, numbered as in DescribeConfigs responses."""

    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    GROUP_CONFIG = 8


class Mutability(Enum):
    """Whether and at which level AlterConfigs may change a broker config."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


class Effect(Enum):
    """The effect of a config; the values appear in docs/configs.md in the column *read*."""

    READ = "yes"
    # Accepted and shown like READ, because every Kafka broker has it, but not read.
    SHOWN = "no"
    # Not read; DescribeConfigs shows it, AlterConfigs changes it if its level allows, and a warning
    # says that a value in a file has no effect.
    KEPT = "kept"


class OfListener(Enum):
    """How AlterConfigs may set one listener's own value (listener.name.<listener>.…)."""

    # For single brokers, as for most configs.
    PER_BROKER = "per-broker"
    # Also for all brokers; if the effect is READ, each listener's own value is read.
    CLUSTER_WIDE = "cluster-wide"
    # For single brokers; without a listener the config cannot be set.
    ONLY = "only"


@dataclass(slots=True, frozen=True, kw_only=True)
class ConfigRow:
    """One config.

    Attributes:
        type: Determines how the text is parsed.
        default: The text of the default; None if unset.
        doc: Text for DescribeConfigs and docs/configs.md.
        also: A number allowed outside the range.
        choices: The allowed strings (for a list: of each item).
        check: Returns what a parsed value must be, or None if it is valid.
        mutability: For broker configs; every topic config can be changed.
        of_listener: How AlterConfigs may set a listener's own value.
        at_most_doubles: For thread counts: a change may at most double or halve the value.
        classes: Java class names that AlterConfigs accepts; None if the config names no classes.
        asks: Whether a value other than the default or "" requires protection (protection.py).
        profile: The value without a configuration file, if it is not the default.
        topic_name: The topic config whose default this broker config is.
        synonyms: The broker configs for the same setting, highest precedence first, unless this is
            the only one. For a topic row: those that give its default.
        internal: Shown by DescribeConfigs only if it is set.
        has_secret: Whether the value in force is a SecretText.
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
            ConfigError: It has the wrong type or is out of range.
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
        """Return whether the value is hidden."""
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
        # 20 digits hold every 64-bit number; longer texts are rejected before the conversion.
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
