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

from typing import TYPE_CHECKING, TypeAlias

from wirebroker import config_describe
from wirebroker.config_describe import DescribedConfig, Synonym
from wirebroker.config_names import NAMES_WITHOUT_EFFECT
from wirebroker.config_row import (
    ConfigError,
    ConfigRow,
    ConfigSource,
    ConfigValue,
    Mutability,
    StartError,
    text_of,
)
from wirebroker.config_table import BROKER_ROWS
from wirebroker.config_topic import TOPIC_ROWS, UNIT_FACTORS, TopicSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "Config",
    "ConfigError",
    "ConfigSource",
    "DescribedConfig",
    "Mutability",
    "StartError",
    "Synonym",
    "TopicSettings",
    "validate_topic_config",
    "validate_topic_configs",
]

# Config has methods of these names, so inside it the types go by others.
_Int: TypeAlias = int
_Str: TypeAlias = str
_Bool: TypeAlias = bool
_Float: TypeAlias = float
_Descriptions: TypeAlias = list[DescribedConfig]


class Config:
    """The values in force for this broker."""

    __slots__ = ("_layers", "_topic_defaults", "_values", "unknown", "without_effect")

    def __init__(
        self,
        static: Mapping[_Str, _Str] | None = None,
        *,
        cluster_wide: Mapping[_Str, _Str] | None = None,
        this_broker: Mapping[_Str, _Str] | None = None,
    ) -> None:
        """Parse and check all values.

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
        others = sorted(name for name in static if name not in BROKER_ROWS)
        # Names that were set but have no effect, for one warning line each.
        self.without_effect = tuple(n for n in others if n in NAMES_WITHOUT_EFFECT)
        self.unknown = tuple(n for n in others if n not in NAMES_WITHOUT_EFFECT)
        self._values = {name: self._parse(row) for name, row in BROKER_ROWS.items()}
        self._topic_defaults = {name: self._topic_default(r) for name, r in TOPIC_ROWS.items()}
        self._check()

    def with_dynamic(
        self, *, cluster_wide: Mapping[_Str, _Str], this_broker: Mapping[_Str, _Str]
    ) -> Config:
        """Return this configuration under other dynamic layers (from the cluster's image)."""
        static = self._layers[2][1]
        return Config(static, cluster_wide=cluster_wide, this_broker=this_broker)

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

    def is_set(self, name: _Str) -> _Bool:
        """Tell whether some layer sets the config (rather than its default)."""
        return any(name in layer for _, layer in self._layers)

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
        if self.without_effect:
            said += (
                "these configs of Kafka have no effect here: " + ", ".join(self.without_effect),
            )
        if self.unknown:
            said += ("unknown configs are ignored: " + ", ".join(self.unknown),)
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
        fields = TopicSettings.__slots__
        named = {name.replace(".", "_"): value for name, value in values.items()}
        return TopicSettings(**{field: named[field] for field in fields})  # type: ignore[arg-type]  # rows parse to the fields' types

    # -- DescribeConfigs ---------------------------------------------------------------------

    def describe_topic(self, overrides: Mapping[_Str, _Str]) -> _Descriptions:
        """Describe the configs of a topic with these overrides, in the order of their names."""
        return config_describe.describe_topic(self._layers, self._topic_defaults, overrides)

    def describe_broker(self) -> _Descriptions:
        """Describe this broker's configs in the order of their names."""
        others = self.without_effect + self.unknown
        return config_describe.describe_broker(self._layers, self._values, others)

    def describe_cluster_default(self) -> _Descriptions:
        """Describe the dynamic cluster-wide configs (DescribeConfigs of the broker named '')."""
        return config_describe.describe_cluster_default(self._layers)

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

    def _check(self) -> None:
        """Check what no single row can."""
        if not self.log_directories or not all(self.log_directories):
            raise ConfigError("log.dirs is empty: name at least one directory")
        for name, value in self._topic_defaults.items():
            if value is None:
                continue
            try:
                TOPIC_ROWS[name].parse(text_of(value) or "")
            except ConfigError as error:
                names = ", ".join(TOPIC_ROWS[name].synonyms)
                raise ConfigError(f"{error} (set by {names})") from None
        if self._topic_defaults["retention.ms"] == 0:
            raise ConfigError("log.retention.ms=0 cannot be used: it must be -1 or at least 1")
        if self.is_set("broker.id") and self.int("broker.id") != self.node_id:
            raise ConfigError("node.id and broker.id differ: give one of them")
        voters = {voter.partition("@")[0] for voter in self.list("controller.quorum.voters")}
        if voters - {_Str(self.node_id)}:
            raise ConfigError(
                f"controller.quorum.voters names other nodes than node.id={self.node_id}: this "
                "broker brings its own controller; leave the setting out"
            )


def validate_topic_config(name: str, value: str) -> None:
    """Check one config of a topic.

    Raises:
        ConfigError: The name is unknown or the value can't be used.
    """
    row = TOPIC_ROWS.get(name)
    if row is None:
        raise ConfigError(f"{name} is not a topic config")
    parsed = row.parse(value)
    if name == "remote.storage.enable" and parsed is True:
        raise ConfigError("remote.storage.enable=true cannot be used: there is no remote storage")


def validate_topic_configs(config: Config, overrides: Mapping[str, str]) -> None:
    """Check all overrides of a topic, each for itself and together with the broker's defaults.

    Raises:
        ConfigError: The first thing that is wrong.
    """
    for name, value in overrides.items():
        validate_topic_config(name, value)
    settings = config.topic_settings(overrides)
    if settings.min_compaction_lag_ms > settings.max_compaction_lag_ms:
        raise ConfigError(
            f"min.compaction.lag.ms={settings.min_compaction_lag_ms} is greater than "
            f"max.compaction.lag.ms={settings.max_compaction_lag_ms}"
        )


def _negative(value: ConfigValue) -> bool:
    return isinstance(value, int) and value < 0
