"""The configuration: the table's rows with the values that were set, layer over layer.

    this broker (dynamic) > cluster-wide (dynamic) > static (file, environment, flags) > default

Every reader takes its values here, by Kafka's names: `config.int("num.partitions")`. A topic's
values are the topic's own overrides over the broker configs that give the defaults:
`config.topic_settings(overrides)`. A Config never changes; a dynamic change makes a new one.

Laws: each value was parsed and checked when the Config was made, so reading cannot fail; a name
that isn't in the table is a mistake of ours (assertion), never the user's.

A leaf: any layer may import it.  Source: Kafka's DynamicBrokerConfig and ConfigHelper.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from wirebroker.config import describe
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

# Config has methods of these names, so inside it the types go by others.
_Int: TypeAlias = int
_Str: TypeAlias = str
_Bool: TypeAlias = bool
_Float: TypeAlias = float
_Descriptions: TypeAlias = "list[DescribedConfig]"


class Config:
    """The values in force for this broker."""

    __slots__ = (
        "_data_directory",
        "_layers",
        "_topic_defaults",
        "_values",
        "java_options",
        "protection_asked",
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

        Args:
            static: What file, environment and flags set.
            cluster_wide: What AlterConfigs set for all brokers.
            this_broker: What AlterConfigs set for this one.
            data_directory: The one place of data, as it is named: log.dirs, but that commas and
                blanks belong to the name.
            java_options: Java system properties; they may name a JAAS file.

        Raises:
            ConfigError: A value can't be used; the text says which and why.
        """
        static = dict(static or {})
        # One setting under two names: as in Kafka, either fills in the other.
        for name, other in (("node.id", "broker.id"), ("broker.id", "node.id")):
            if other in static:
                static.setdefault(name, static[other])
        self._layers: tuple[tuple[ConfigSource, Mapping[_Str, _Str]], ...] = (
            (ConfigSource.DYNAMIC_BROKER_CONFIG, dict(this_broker or {})),
            (ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG, dict(cluster_wide or {})),
            (ConfigSource.STATIC_BROKER_CONFIG, static),
        )
        others = sorted(name for name in static if not is_read(name))
        # Names that were set but have no effect, for one warning line each.
        self.without_effect = tuple(name for name in others if is_known(name))
        self.unknown = tuple(name for name in others if not is_known(name))
        # Names that ask for what isn't there: see config/protection.py.
        self.protection_asked = asking_names(static)
        self._values = {name: self._parse(row) for name, row in BROKER_ROWS.items()}
        for name in {name for _, layer in self._layers for name in layer} - BROKER_ROWS.keys():
            row = row_of(name)
            if row is not None:
                self._values[name] = self._parse(replace(row, name=name))
        self.java_options = java_options
        self._data_directory = data_directory
        if data_directory is not None:
            self._values["log.dirs"] = (data_directory,)
        self._topic_defaults = {name: self._topic_default(r) for name, r in TOPIC_ROWS.items()}
        check_together(self, self._topic_defaults)

    def with_dynamic(
        self, *, cluster_wide: Mapping[_Str, _Str], this_broker: Mapping[_Str, _Str]
    ) -> Config:
        """Return this configuration under other dynamic layers (from the cluster's image)."""
        static = self._layers[2][1]
        return Config(
            static,
            cluster_wide=cluster_wide,
            this_broker=this_broker,
            data_directory=self._data_directory,
            java_options=self.java_options,
        )

    # -- values ------------------------------------------------------------------------------

    def value(self, name: _Str) -> ConfigValue:
        """Return the value of a broker config, None if it is unset and has no default."""
        assert name in self._values, f"{name} is not a row of the config table"
        return self._values[name]

    def int(self, name: _Str) -> _Int:
        """Return the value of a whole-number config that has a default."""
        value = self.value(name)
        assert isinstance(value, _Int), f"{name} is not a whole number"
        return value

    def static_int(self, name: _Str) -> _Int:
        """Return a whole number as file, environment and flags set it, or its default."""
        return Config(self._layers[2][1]).int(name)

    def float(self, name: _Str) -> _Float:
        """Return the value of a decimal config."""
        value = self.value(name)
        assert isinstance(value, _Float), f"{name} is not a decimal number"
        return value

    def bool(self, name: _Str) -> _Bool:
        """Return the value of a true/false config."""
        value = self.value(name)
        assert isinstance(value, _Bool), f"{name} is not true or false"
        return value

    def str(self, name: _Str) -> _Str:
        """Return the value of a text config that has a default."""
        value = self.value(name)
        assert isinstance(value, _Str), f"{name} is not a text"
        return value

    def listener_int(self, listener: _Str, name: _Str) -> _Int:
        """Return a whole-number config of one listener: its own value, else the broker's."""
        value = self.listener_value(listener, name)
        assert isinstance(value, _Int), f"{name} is not a whole number"
        return value

    def listener_value(
        self, listener: _Str, name: _Str, *, mechanism: _Str | None = None
    ) -> ConfigValue:
        """Return a config of one listener: that of its SASL mechanism, its own, the broker's."""
        own = listener_config(listener, name)
        names = [own, name]
        if mechanism is not None:
            names.insert(0, listener_config(listener, f"{mechanism.lower()}.{name}"))
        found = next((each for each in names if each in self._values), name)
        return self.set_or_default(found)

    def list(self, name: _Str) -> tuple[_Str, ...]:
        """Return the items of a list config; none if it is unset."""
        value = self.value(name)
        assert value is None or isinstance(value, tuple), f"{name} is not a list"
        return value or ()

    def optional_str(self, name: _Str) -> _Str | None:
        """Return the value of a text config that may be unset; an empty text counts as unset."""
        value = self.value(name)
        assert value is None or isinstance(value, _Str), f"{name} is not a text"
        return value or None

    def set_or_default(self, name: _Str) -> ConfigValue:
        """Return the value of a config that nothing need read: of any row with a type."""
        if name in self._values:
            return self._values[name]
        row = row_of(name)
        return None if row is None else row.default_value()

    def is_set(self, name: _Str) -> _Bool:
        """Tell whether some layer sets the config (rather than its default)."""
        return any(name in layer for _, layer in self._layers)

    def placeholder_in(self, text: _Str) -> _Str | None:
        """Return the first placeholder of a configured config provider in a text, None without."""
        static = self._layers[2][1]
        if not static.get(CONFIG_PROVIDERS):
            return None
        from wirebroker.config.providers import placeholder_in  # noqa: PLC0415 - few have them

        return placeholder_in(text, static)

    def is_provided(self, name: _Str) -> _Bool:
        """Tell whether a config provider gave the value of a static config, in part or whole."""
        return isinstance(self._layers[2][1].get(name), SecretText)

    def redacted(self, message: _Str, *, at_least: _Int = 1) -> _Str:
        """Return a message without the values that config providers gave.

        Args:
            message: What is shown.
            at_least: Length of the values that are hidden; shorter ones may be part of any word.
        """
        static = self._layers[2][1]
        if not static.get(CONFIG_PROVIDERS):
            return message
        from wirebroker.config.providers import redacted  # noqa: PLC0415 - few have them

        return redacted(message, static, at_least)

    @property
    def node_id(self) -> _Int:
        """Return this node's number."""
        return self.int("node.id")

    @property
    def log_directories(self) -> tuple[_Str, ...]:
        """Return the data directories as they were written: log.dirs, else log.dir."""
        return self.list("log.dir" if self.value("log.dirs") is None else "log.dirs")

    def warnings(self) -> tuple[_Str, ...]:
        """Return one sentence for each kind of name that was set in vain; values aren't shown."""
        said: tuple[_Str, ...] = ()
        warning = unprotected_warning(self)
        if warning is not None:
            said += (warning,)
        names = [name for name in self.without_effect if name not in self.protection_asked]
        if names:
            said += ("these configs of Kafka have no effect here: " + ", ".join(names),)
        ignored = self.java_options.without_effect
        if ignored:
            said += ("these Java system properties have no effect here: " + ", ".join(ignored),)
        if self.unknown:
            said += ("unknown configs are ignored: " + ", ".join(map(with_hint, self.unknown)),)
        return said

    # -- topics ------------------------------------------------------------------------------

    def topic_settings(self, overrides: Mapping[_Str, _Str]) -> TopicSettings:
        """Return the values in force for a topic.

        Args:
            overrides: The topic's own configs, as they stand in the metadata log. Names that we
                don't know (of a newer Kafka) are passed over.
        """
        values = dict(self._topic_defaults)
        for name, text in overrides.items():
            if name in TOPIC_ROWS:
                values[name] = TOPIC_ROWS[name].parse(text)
        if values["internal.segment.bytes"] is not None:
            values["segment.bytes"] = values["internal.segment.bytes"]
        named = {name.replace(".", "_"): value for name, value in values.items()}
        return TopicSettings(**named)  # type: ignore[arg-type]  # rows parse to the fields' types

    # -- DescribeConfigs ---------------------------------------------------------------------

    def describe_topic(self, overrides: Mapping[_Str, _Str]) -> _Descriptions:
        """Describe the configs of a topic with these overrides, in the order of their names."""
        return describe.describe_topic(self._layers, self._topic_defaults, overrides)

    def describe_broker(self) -> _Descriptions:
        """Describe this broker's configs in the order of their names."""
        return describe.describe_broker(self._layers, self._values)

    def describe_group(self, overrides: Mapping[_Str, _Str]) -> _Descriptions:
        """Describe the configs of a group with these overrides, in the order of their names."""
        return describe.describe_group(self._layers, overrides)

    def describe_cluster_default(self) -> _Descriptions:
        """Describe the dynamic cluster-wide configs (DescribeConfigs of the broker named '')."""
        return describe.describe_cluster_default(self._layers)

    # -- construction ------------------------------------------------------------------------

    def _parse(self, row: ConfigRow) -> ConfigValue:
        for _, layer in self._layers:
            if row.name in layer:
                return row.parse(layer[row.name])
        return row.default_value()

    def _topic_default(self, row: ConfigRow) -> ConfigValue:
        """Return the default that the broker gives a topic config, in the topic's unit."""
        for name in row.synonyms:
            value = self._values[name]
            if value is not None:
                if isinstance(value, _Int) and name in UNIT_FACTORS:
                    value *= UNIT_FACTORS[name]
                # Kafka takes every negative retention time of a broker for "no limit".
                return -1 if row.name == "retention.ms" and _negative(value) else value
        return row.default_value()


def _negative(value: ConfigValue) -> bool:
    return isinstance(value, int) and value < 0
