"""One row of the config table: a name, its type and range, and how its text is read and shown.

Text is the only form in which values travel (files, environment, requests, metadata records); a
row turns it into a Python value, or says in one sentence why not. Reading is Java's: blanks around
a value don't count, `+5` is a number and `1_0` is not, a list is cut at commas. Showing is Java's
too (texts.py), since DescribeConfigs answers with the parsed value (`1e-4` as `1.0E-4`).

All that is known of a config stands in its row, and all that reads the table reads it there: a new
config is a row in one of table/'s files (a topic's: a field of TopicSettings) and a line where it
is used.

A leaf: imports nothing of ours.  Source: Kafka's ConfigDef (types, ranges), KIP-226 (mutability).
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
    """A setting that cannot be used; its text is one sentence for whoever wrote the setting."""


class StartError(Exception):
    """Something outside the configuration keeps the broker from starting.

    Attributes:
        what: What went wrong, without a full stop ("port 9092 is in use").
        mend: What to do about it ("stop the other process or give --port").
    """

    def __init__(self, what: str, mend: str) -> None:
        super().__init__(f"{what}: {mend}")
        self.what = what
        self.mend = mend


class SecretText(str):
    """The text of a setting that a config provider gave in part; it is never shown.

    Attributes:
        values: The values that stand for placeholders.
    """

    __slots__ = ("values",)

    values: tuple[str, ...]

    @classmethod
    def of(cls, text: str, values: tuple[str, ...]) -> SecretText:
        """Return a text that has these values in it."""
        made = cls(text)
        made.values = values
        return made


def with_secrets(settings: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """Return settings of which those with these names are never shown."""
    return {
        **settings,
        **{name: SecretText.of(settings[name], (settings[name],)) for name in names},
    }


class ConfigType(Enum):
    """The type of a config; the value is its number in a DescribeConfigs response."""

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
    """Where a config's value comes from, as numbered in a DescribeConfigs response."""

    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    GROUP_CONFIG = 8


class Mutability(Enum):
    """Whether AlterConfigs may change a broker config, and at which level."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


class Effect(Enum):
    """What a config does here; the values are docs/configs.md's column *read*."""

    # Some code here reads it.
    READ = "yes"
    # Nothing reads it; it is shown and taken as if something did, since every broker has it.
    SHOWN = "no"
    # Nothing reads it; DescribeConfigs shows it, AlterConfigs changes it if its level allows, and a
    # warning says that a value in a file has no effect.
    KEPT = "kept"


class OfListener(Enum):
    """Who may set one listener's own value (listener.name.<listener>.…) while the broker runs."""

    # For each broker, as most configs.
    PER_BROKER = "per-broker"
    # For all brokers too; if the row is read, each listener's own value is.
    CLUSTER_WIDE = "cluster-wide"
    # And there is no setting it without a listener.
    ONLY = "only"


@dataclass(slots=True, frozen=True, kw_only=True)
class ConfigRow:
    """One config.

    Attributes:
        name: Kafka's name, or `wirebroker.…` for what Kafka lacks.
        type: Decides how the text is read.
        default: The text of the default; None for a config that is unset by default.
        doc: One or two sentences; shown by DescribeConfigs and in docs/configs.md.
        at_least: Least number allowed.
        at_most: Greatest number allowed.
        also: A number that is allowed outside the range (compression.gzip.level: -1).
        choices: The strings allowed (of a list: of each item).
        check: A further rule for the parsed value: returns what it must be, or None if it is.
        mutability: Of broker configs; every topic config can be changed.
        effect: Whether something reads it, and if not, what becomes of it.
        of_listener: What AlterConfigs may do to one listener's own value.
        at_most_doubles: A number of threads: a change at most doubles or halves it.
        classes: Names of Java classes, or "", that stand for what is there; AlterConfigs refuses
            any other. None if the config names no classes.
        asks: Whether another value than the default, or "", asks for protection (protection.py).
        profile: The value of a broker without a configuration file, if it isn't the default.
        topic_name: The topic config of which this broker config is a default.
        synonyms: The broker configs that set the same thing, highest precedence first; empty if
            this one stands alone. Of a topic row: the broker configs that give its default.
        internal: Accepted, but shown by DescribeConfigs only when it is set.
        has_secret: Whether the value in force is a SecretText, which is hidden whatever its type.
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
        """Read the text of a value.

        Raises:
            ConfigError: The text is not of the row's type, or out of its range.
        """
        if isinstance(text, SecretText):
            return self._parse_secret(text)
        text = text.strip()
        value = self._read(text)
        wish = self._number_wish(value) or self._choice_wish(value)
        if wish is None and self.check is not None:
            wish = self.check(value)
        if wish is not None:
            raise ConfigError(f"{self.name}={self._shown(text)} cannot be used: {wish}")
        return value

    def _parse_secret(self, text: SecretText) -> ConfigValue:
        try:
            return self.parse(str(text))
        except ConfigError:
            raise ConfigError(
                f"{self.name} cannot be used: its value comes from a config provider and is not"
                f" a valid {self.type.name.lower()}"
            ) from None

    def default_value(self) -> ConfigValue:
        """Return the default as a value; None if the config is unset by default."""
        return None if self.default is None else self.parse(self.default)

    @property
    def is_sensitive(self) -> bool:
        """Tell whether the value is never shown."""
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
        # 20 digits hold every 64-bit number; a longer text is refused before it is converted.
        if _WHOLE_NUMBER.fullmatch(text) and len(text) <= 20:
            value = int(text)
            if -(1 << bits) <= value < 1 << bits:
                return value
        raise ConfigError(
            f"{self.name}={text[:40]} cannot be used: it must be a whole number of {bits + 1} bits"
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
