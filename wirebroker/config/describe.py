"""Descriptions of configs for DescribeConfigs.

Synonyms are in order of precedence, as are `layers`, which lack the defaults.

Source: Kafka's ConfigHelper and DynamicBrokerConfig, compared with Kafka 4.4.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from wirebroker.config.client_metrics import CLIENT_METRICS_ROWS, readable_client_metrics
from wirebroker.config.groups import GROUP_ROWS
from wirebroker.config.lookup import base_name, is_of_a_listener, is_read_only, row_of
from wirebroker.config.rows.row import (
    ConfigError,
    ConfigRow,
    ConfigSource,
    ConfigType,
    ConfigValue,
    Mutability,
    SecretText,
)
from wirebroker.config.rows.texts import LONGEST_STRING_BYTES, text_of
from wirebroker.config.rows.topic import TOPIC_ROWS
from wirebroker.config.table import ROWS

Layers = Sequence[tuple[ConfigSource, Mapping[str, str]]]

_UNKNOWN_TYPE: Final = 0


class Synonym(NamedTuple):
    """A place that can set a config's value."""

    name: str
    value: str | None
    source: ConfigSource


class DescribedConfig(NamedTuple):
    """A config of a DescribeConfigs response."""

    name: str
    value: str | None
    read_only: bool
    config_source: ConfigSource
    is_sensitive: bool
    synonyms: tuple[Synonym, ...]
    config_type: int
    documentation: str | None


def describe_topic(
    layers: Layers, defaults: Mapping[str, ConfigValue], overrides: Mapping[str, str]
) -> list[DescribedConfig]:
    """Describe a topic's configs by name."""
    described: list[DescribedConfig] = []
    for name, row in sorted(TOPIC_ROWS.items()):
        if row.internal and name not in overrides:
            continue
        value = row.parse(overrides[name]) if name in overrides else defaults[name]
        text = text_of(value)
        synonyms = _synonyms(layers, row.synonyms[0], row.synonyms) if row.synonyms else ()
        if name in overrides:
            synonyms = (Synonym(name, text, ConfigSource.DYNAMIC_TOPIC_CONFIG), *synonyms)
        has_secret = name not in overrides and _is_secret(layers, row.synonyms)
        described_row = replace(row, has_secret=has_secret)
        described.append(_described(described_row, text, synonyms, read_only=False))
    return described


def describe_group(
    layers: Layers, values: Mapping[str, ConfigValue], overrides: Mapping[str, str]
) -> list[DescribedConfig]:
    """Describe a group's configs by name: all rows, and other overrides.

    `values` are those of the broker, and may lack rows without effect that are not set.
    """
    described: list[DescribedConfig] = []
    for name in sorted(GROUP_ROWS.keys() | overrides.keys()):
        row = GROUP_ROWS.get(name)
        if row is not None and (not row.internal or name in overrides):
            described.append(_described_group_config(row, layers, values, overrides))
        elif row is None:
            source = ConfigSource.GROUP_CONFIG
            synonyms = (Synonym(name, overrides[name], source),)
            described.append(
                DescribedConfig(
                    name, overrides[name], False, source, False, synonyms, _UNKNOWN_TYPE, None
                )
            )
    return described


def describe_client_metrics(overrides: Mapping[str, str]) -> list[DescribedConfig]:
    """Describe the configs of a client metrics resource by name."""
    described: list[DescribedConfig] = []
    for name, value in sorted(readable_client_metrics(overrides).items()):
        text = text_of(value)
        synonym = Synonym(name, text, ConfigSource.CLIENT_METRICS_CONFIG)
        synonyms = (synonym,) if name in overrides else ()
        described.append(_described(CLIENT_METRICS_ROWS[name], text, synonyms, read_only=False))
    return described


def _described_group_config(
    row: ConfigRow,
    layers: Layers,
    values: Mapping[str, ConfigValue],
    overrides: Mapping[str, str],
) -> DescribedConfig:
    """Describe a config of a group, set or from the broker."""
    value = row.default_value()
    for giver in row.synonyms:
        value = values.get(giver, ROWS[giver].default_value())
        if isinstance(value, tuple) and row.type is ConfigType.STRING:
            value = value[0] if value else None
    text = text_of(value)
    synonyms = [synonym for giver in row.synonyms for synonym in _synonyms(layers, giver, (giver,))]
    if not row.synonyms:
        synonyms.append(Synonym(row.name, row.default, ConfigSource.DEFAULT_CONFIG))
    if row.name in overrides:
        text = _parsed_text(row, overrides[row.name])
        synonyms.insert(0, Synonym(row.name, text, ConfigSource.GROUP_CONFIG))
    has_secret = row.name not in overrides and _is_secret(layers, row.synonyms)
    return _described(replace(row, has_secret=has_secret), text, tuple(synonyms), read_only=False)


def _parsed_text(row: ConfigRow, text: str) -> str | None:
    """Return a stored value as Kafka shows it; one of another release may be invalid here."""
    try:
        return text_of(row.parse(text))
    except ConfigError:
        return text


def describe_broker(layers: Layers, values: Mapping[str, ConfigValue]) -> list[DescribedConfig]:
    """Describe a broker's configs by name: all rows, and other names that are set.

    `values` may lack rows without effect that are not set.
    """
    described: list[DescribedConfig] = []
    for name, row in ROWS.items():
        if row.internal and not any(name in layer for _, layer in layers):
            continue
        synonyms = _synonyms(layers, name, row.synonyms or (name,))
        read_only = row.mutability is Mutability.READ_ONLY
        described_row = replace(row, has_secret=_is_secret(layers, (name,)))
        value = values[name] if name in values else row.default_value()
        described.append(_described(described_row, text_of(value), synonyms, read_only=read_only))
    described += [_described_other(name, layers) for name in _other_names(layers)]
    return sorted(described)


def describe_cluster_default(layers: Layers) -> list[DescribedConfig]:
    """Describe the cluster-wide configs (of the broker named '')."""
    source = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    own_layer = [(source, dict(layers)[source])]
    described: list[DescribedConfig] = []
    for name, text in sorted(dict(layers)[source].items()):
        row = ROWS.get(name)
        if row is None:
            described.append(_described_other(name, own_layer, has_defaults=False))
        else:
            read_only = row.mutability is Mutability.READ_ONLY
            synonyms = (Synonym(name, text, source),)
            described.append(_described(row, text, synonyms, read_only=read_only))
    return described


def _other_names(layers: Layers) -> set[str]:
    return {name for _, layer in layers for name in layer} - ROWS.keys()


def _described_other(name: str, layers: Layers, *, has_defaults: bool = True) -> DescribedConfig:
    """Describe a config without a row; without a known type, its value is hidden."""
    row = row_of(name)
    base = base_name(name)
    if row is None:
        sources = [source for source, layer in layers if name in layer]
        synonyms = tuple(Synonym(name, None, source) for source in sources)
        return DescribedConfig(name, None, True, sources[0], True, synonyms, _UNKNOWN_TYPE, None)
    names = (name,) if base == name else (name, base)
    synonyms = _synonyms(layers, name, names, has_defaults=has_defaults)
    has_secret = _is_secret(layers, names)
    text = None if has_secret else text_of(row.parse(synonyms[0].value or ""))
    row = replace(row, name=name, has_secret=has_secret)
    return _described(row, text, synonyms, read_only=base != name or is_read_only(name))


def _is_secret(layers: Layers, names: Sequence[str]) -> bool:
    texts = (layer[name] for _, layer in layers for name in names if name in layer)
    return isinstance(next(texts, None), SecretText)


def _shown(text: str) -> str | None:
    return None if isinstance(text, SecretText) else text


def _synonyms(
    layers: Layers, name: str, names: tuple[str, ...], *, has_defaults: bool = True
) -> tuple[Synonym, ...]:
    """List the sources of `name`.

    As in Kafka, those before the first of that exact name are omitted: a topic's retention.ms from
    log.retention.hours has no synonyms and counts as a default.
    """
    synonyms = [
        Synonym(candidate, _shown(layer[candidate]), source)
        for source, layer in layers
        for candidate in names
        if candidate in layer
    ]
    for candidate in names if has_defaults else ():
        row = None if is_of_a_listener(candidate) else row_of(candidate)
        default = None if row is None else text_of(row.default_value())
        if default is not None:
            synonyms.append(Synonym(candidate, default, ConfigSource.DEFAULT_CONFIG))
    first = next((i for i, synonym in enumerate(synonyms) if synonym.name == name), len(synonyms))
    return tuple(synonyms[first:])


def _described(
    row: ConfigRow, text: str | None, synonyms: tuple[Synonym, ...], *, read_only: bool
) -> DescribedConfig:
    if row.is_sensitive:
        text = None
        synonyms = tuple(synonym._replace(value=None) for synonym in synonyms)
    return DescribedConfig(
        name=row.name,
        value=_fitting(text),
        read_only=read_only,
        config_source=synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG,
        is_sensitive=row.is_sensitive,
        synonyms=tuple(synonym._replace(value=_fitting(synonym.value)) for synonym in synonyms),
        config_type=row.type.value,
        documentation=row.doc,
    )


def _fitting(text: str | None) -> str | None:
    return None if text is None or len(text.encode()) > LONGEST_STRING_BYTES else text
