"""The configuration in force: the table's rows with their values, in layers.

    this broker (dynamic) > cluster-wide (dynamic) > static (file, environment, flags) > default

A Config is immutable; a dynamic change creates a new one. A name outside the table is a programming
error.

Source: Kafka's DynamicBrokerConfig and ConfigHelper.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

from wirebroker.config import describe
from wirebroker.config.group_limits import ASSIGNMENT_INTERVALS, clamped_interval
from wirebroker.config.hints import is_known, with_hint
from wirebroker.config.java.java_options import NO_JAVA_OPTIONS, JavaOptions
from wirebroker.config.lookup import CONFIG_PROVIDERS, is_read, listener_config, row_of
from wirebroker.config.protection import asking_names, unprotected_warning
from wirebroker.config.rows.row import (
    ConfigRow,
    ConfigSource,
    ConfigValue,
    SecretText,
)
from wirebroker.config.rows.topic import TOPIC_ROWS, UNIT_FACTORS, TopicSettings
from wirebroker.config.table import BROKER_ROWS
from wirebroker.config.together import check_together

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.config.describe import DescribedConfig

# The methods have the types' names.
_Int: TypeAlias = int
_Str: TypeAlias = str
_Bool: TypeAlias = bool
_Float: TypeAlias = float
_Descriptions: TypeAlias = "list[DescribedConfig]"


class Config:
    """The values in force."""

    __slots__ = (
        "_data_directory",
        "_layers",
        "_topic_defaults",
        "_values",
        "java_options",
        "protection_requested",
        "unknown",
        "without_effect",
    )

    def __init__(
        self,
        static: Mapping[_Str, _Str] | None = None,
        *,
        cluster_wide: Mapping[_Str, _Str] | None = None,
        this_broker: Mapping[_Str, _Str] | None = None,
        data_directory: _Str | None = None,
        java_options: JavaOptions = NO_JAVA_OPTIONS,
    ) -> None:
        """Parse and check all values.

        `static` are the settings of file, environment and flags. `data_directory` replaces
        log.dirs; commas and blanks belong to its name.

        Raises:
            ConfigError: A value is invalid.
        """
        static = dict(static or {})
        # As in Kafka, each name sets the other.
        for name, other in (("node.id", "broker.id"), ("broker.id", "node.id")):
            if other in static:
                static.setdefault(name, static[other])
        self._layers: tuple[tuple[ConfigSource, Mapping[_Str, _Str]], ...] = (
            (ConfigSource.DYNAMIC_BROKER_CONFIG, dict(this_broker or {})),
            (ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG, dict(cluster_wide or {})),
            (ConfigSource.STATIC_BROKER_CONFIG, static),
        )
        unread_names = sorted(name for name in static if not is_read(name))
        self.without_effect = tuple(name for name in unread_names if is_known(name))
        self.unknown = tuple(name for name in unread_names if not is_known(name))
        self.protection_requested = asking_names(static)
        self._values = dict(_defaults())
        set_names = {name for _, layer in self._layers for name in layer}
        for name in [name for name in BROKER_ROWS if name in set_names]:
            self._values[name] = self._parse(BROKER_ROWS[name])
        for name in set_names - BROKER_ROWS.keys():
            row = row_of(name)
            if row is not None:
                self._values[name] = self._parse(replace(row, name=name))
        for name in ASSIGNMENT_INTERVALS:
            if any(name in layer for _, layer in self._layers[:2]):
                self._values[name] = clamped_interval(name, self._values)
        self.java_options = java_options
        self._data_directory = data_directory
        if data_directory is not None:
            self._values["log.dirs"] = (data_directory,)
        self._topic_defaults = {name: self._topic_default(r) for name, r in TOPIC_ROWS.items()}
        check_together(self, self._topic_defaults)

    def with_dynamic(
        self, *, cluster_wide: Mapping[_Str, _Str], this_broker: Mapping[_Str, _Str]
    ) -> Config:
        """Return this configuration with other dynamic layers."""
        static = self._layers[2][1]
        return Config(
            static,
            cluster_wide=cluster_wide,
            this_broker=this_broker,
            data_directory=self._data_directory,
            java_options=self.java_options,
        )

    def value(self, name: _Str) -> ConfigValue:
        """Return a broker config, or None if it is unset without a default."""
        assert name in self._values, f"{name} is not a row of the config table"
        return self._values[name]

    def int(self, name: _Str) -> _Int:
        """Return an integer config."""
        value = self.value(name)
        assert isinstance(value, _Int), f"{name} is not a whole number"
        return value

    def static_int(self, name: _Str) -> _Int:
        """Return an integer without dynamic configs."""
        return Config(self._layers[2][1]).int(name)

    def float(self, name: _Str) -> _Float:
        """Return a decimal config."""
        value = self.value(name)
        assert isinstance(value, _Float), f"{name} is not a decimal number"
        return value

    def bool(self, name: _Str) -> _Bool:
        """Return a boolean config."""
        value = self.value(name)
        assert isinstance(value, _Bool), f"{name} is not true or false"
        return value

    def str(self, name: _Str) -> _Str:
        """Return a text config with a default."""
        value = self.value(name)
        assert isinstance(value, _Str), f"{name} is not a text"
        return value

    def listener_int(self, listener: _Str, name: _Str) -> _Int:
        """Return a listener's own integer, else the broker's."""
        value = self.listener_value(listener, name)
        assert isinstance(value, _Int), f"{name} is not a whole number"
        return value

    def listener_value(
        self, listener: _Str, name: _Str, *, mechanism: _Str | None = None
    ) -> ConfigValue:
        """Return the value for a listener's SASL mechanism, else the listener's or the broker's."""
        own = listener_config(listener, name)
        names = [own, name]
        if mechanism is not None:
            names.insert(0, listener_config(listener, f"{mechanism.lower()}.{name}"))
        effective_name = next((candidate for candidate in names if candidate in self._values), name)
        return self.set_or_default(effective_name)

    def list(self, name: _Str) -> tuple[_Str, ...]:
        """Return the items of a list config; empty if unset."""
        value = self.value(name)
        assert value is None or isinstance(value, tuple), f"{name} is not a list"
        return value or ()

    def optional_str(self, name: _Str) -> _Str | None:
        """Return a text config, or None if it is unset or empty."""
        value = self.value(name)
        assert value is None or isinstance(value, _Str), f"{name} is not a text"
        return value or None

    def set_or_default(self, name: _Str) -> ConfigValue:
        """Return the value of any row with a type, even if no code reads it."""
        if name in self._values:
            return self._values[name]
        row = row_of(name)
        return None if row is None else row.default_value()

    def is_set(self, name: _Str) -> _Bool:
        """Return whether a layer sets the config."""
        return any(name in layer for _, layer in self._layers)

    def placeholder_in(self, text: _Str) -> _Str | None:
        """See providers.placeholder_in."""
        static = self._layers[2][1]
        if not static.get(CONFIG_PROVIDERS):
            return None
        from wirebroker.config.providers import placeholder_in  # noqa: PLC0415

        return placeholder_in(text, static)

    def is_provided(self, name: _Str) -> _Bool:
        """Return whether a static value contains one of a config provider."""
        return isinstance(self._layers[2][1].get(name), SecretText)

    def redacted(self, message: _Str, *, at_least: _Int = 1) -> _Str:
        """Return a message without config providers' values of at least this length."""
        static = self._layers[2][1]
        if not static.get(CONFIG_PROVIDERS):
            return message
        from wirebroker.config.providers import redacted  # noqa: PLC0415

        return redacted(message, static, at_least)

    @property
    def node_id(self) -> _Int:
        """The node's id."""
        return self.int("node.id")

    @property
    def log_directories(self) -> tuple[_Str, ...]:
        """The paths of log.dirs, else of log.dir."""
        return self.list("log.dir" if self.value("log.dirs") is None else "log.dirs")

    def warnings(self) -> tuple[_Str, ...]:
        """Return one sentence for each kind of setting without effect."""
        sentences: tuple[_Str, ...] = ()
        warning = unprotected_warning(self)
        if warning is not None:
            sentences += (warning,)
        names = [name for name in self.without_effect if name not in self.protection_requested]
        if names:
            sentences += ("these Kafka configs have no effect in wirebroker: " + ", ".join(names),)
        ignored = self.java_options.without_effect
        if ignored:
            sentences += (
                ("these Java system properties have no effect in wirebroker: ")
                + ", ".join(ignored),
            )
        if self.unknown:
            sentences += (
                "unknown configs are ignored: " + ", ".join(map(with_hint, self.unknown)),
            )
        return sentences

    def topic_settings(self, overrides: Mapping[_Str, _Str]) -> TopicSettings:
        """Return a topic's values; unknown overrides (of a newer Kafka) are ignored."""
        values = dict(self._topic_defaults)
        for name, text in overrides.items():
            if name in TOPIC_ROWS:
                values[name] = TOPIC_ROWS[name].parse(text)
        if values["internal.segment.bytes"] is not None:
            values["segment.bytes"] = values["internal.segment.bytes"]
        arguments = {name.replace(".", "_"): value for name, value in values.items()}
        return TopicSettings(**arguments)  # type: ignore[arg-type]  # rows parse to the fields' types

    def describe_topic(self, overrides: Mapping[_Str, _Str]) -> _Descriptions:
        """Describe a topic's configs."""
        return describe.describe_topic(self._layers, self._topic_defaults, overrides)

    def describe_broker(self) -> _Descriptions:
        """Describe this broker's configs."""
        return describe.describe_broker(self._layers, self._values)

    def describe_group(self, overrides: Mapping[_Str, _Str]) -> _Descriptions:
        """Describe a group's configs."""
        return describe.describe_group(self._layers, self._values, overrides)

    def describe_cluster_default(self) -> _Descriptions:
        """Describe the dynamic cluster-wide configs."""
        return describe.describe_cluster_default(self._layers)

    def _parse(self, row: ConfigRow) -> ConfigValue:
        for _, layer in self._layers:
            if row.name in layer:
                return row.parse(layer[row.name])
        return row.default_value()

    def _topic_default(self, row: ConfigRow) -> ConfigValue:
        for name in row.synonyms:
            value = self._values[name]
            if value is not None:
                if isinstance(value, _Int) and name in UNIT_FACTORS:
                    value *= UNIT_FACTORS[name]
                # As in Kafka, any negative retention time of a broker means "no limit".
                return -1 if row.name == "retention.ms" and _negative(value) else value
        return row.default_value()


@cache
def _defaults() -> Mapping[str, ConfigValue]:
    """Return the defaults of the broker's configs: parsing all of them takes a millisecond."""
    return {name: row.default_value() for name, row in BROKER_ROWS.items()}


def _negative(value: ConfigValue) -> bool:
    return isinstance(value, int) and value < 0
