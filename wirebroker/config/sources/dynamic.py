"""Validation of dynamic broker configs, before they are written and when they are applied.

The resulting state is validated in Kafka's order: names that cannot be changed, types, names that
only single brokers may set, the values together, and the step from the old values.

Source: Kafka's DynamicBrokerConfig, LogCleaner, ConnectionQuotas; compared with Kafka 4.3.1.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from wirebroker.config.group_limits import check_dynamic_interval
from wirebroker.config.listeners.listeners import is_auto, listeners_of
from wirebroker.config.lookup import (
    READ_PER_LISTENER,
    base_name,
    is_of_a_listener,
    is_read_only,
    listener_config,
    row_of,
)
from wirebroker.config.protection import asking_names
from wirebroker.config.rows.row import ConfigError, Mutability, OfListener
from wirebroker.config.table import ROWS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.config.listeners.listeners import ListenerConfig
    from wirebroker.config.values import Config

# Clients may not set the sources of the keys that sign tokens.
_WHOSE_TOKENS: Final = "sasl.oauthbearer."
_ALL_THREADS: Final = sorted(row.name for row in ROWS.values() if row.at_most_doubles)
_THREADS_OF_LISTENERS: Final = tuple(
    name for name in _ALL_THREADS if ROWS[name].of_listener is OfListener.CLUSTER_WIDE
)
_THREADS: Final = tuple(name for name in _ALL_THREADS if name not in _THREADS_OF_LISTENERS)


def check_change(
    config: Config,
    *,
    cluster_wide: Mapping[str, str],
    this_broker: Mapping[str, str],
    is_default: bool,
) -> None:
    """Check the dynamic configs after a change of `cluster_wide` (`is_default`) or `this_broker`.

    Raises:
        ConfigError: They are invalid.
    """
    changed = cluster_wide if is_default else this_broker
    for refusal in _refusals(changed, config, is_default=is_default).values():
        raise ConfigError(refusal)
    try:
        after = config.with_dynamic(
            cluster_wide=usable(cluster_wide, config, is_default=True),
            this_broker=usable(this_broker, config, is_default=False),
        )
        _check_step(config, after)
        check_dynamic_interval(after, changed)
    except ConfigError as error:
        raise ConfigError(config.redacted(str(error))) from None


def with_usable(
    config: Config, *, cluster_wide: Mapping[str, str], this_broker: Mapping[str, str]
) -> tuple[Config, list[str]]:
    """Return the configuration with the valid configs, and why others are ignored, as in Kafka."""
    problems = [
        *_refusals(cluster_wide, config, is_default=True).values(),
        *_refusals(this_broker, config, is_default=False).values(),
    ]
    usable_cluster_wide = usable(cluster_wide, config, is_default=True)
    usable_this_broker = usable(this_broker, config, is_default=False)
    nothing: dict[str, str] = {}
    for for_all, for_this in (
        (usable_cluster_wide, usable_this_broker),
        (usable_cluster_wide, nothing),
        (nothing, nothing),
    ):
        try:
            candidate = config.with_dynamic(cluster_wide=for_all, this_broker=for_this)
            listeners_of(candidate)
        except ConfigError as error:
            problems.append(config.redacted(str(error)))
        else:
            return candidate, problems
    raise AssertionError("the static configuration was used before")


def usable(configs: Mapping[str, str], config: Config, *, is_default: bool) -> dict[str, str]:
    """Return the configs that are valid on their own."""
    refused = _refusals(configs, config, is_default=is_default)
    return {name: value for name, value in configs.items() if name not in refused}


def placeholder_refusal(name: str, value: str, config: Config) -> str | None:
    """Return why a request cannot set a value with a placeholder, or None."""
    placeholder = config.placeholder_in(value)
    return placeholder and (
        f"{name}={placeholder} cannot be set by a request: placeholders of config providers are "
        "resolved only in the broker's configuration file and environment"
    )


def _refusals(configs: Mapping[str, str], config: Config, *, is_default: bool) -> dict[str, str]:
    refusals: dict[str, str] = {}
    for name, value in configs.items():
        refusal = (
            placeholder_refusal(name, value, config)
            or _name_refusal(name)
            or _value_refusal(name, value)
        )
        if refusal is None and is_default and _is_for_single_brokers(name):
            refusal = f"{name} can be set only for single brokers"
        if refusal is not None:
            refusals[name] = refusal
    return refusals


def _name_refusal(name: str) -> str | None:
    is_of_tokens = is_of_a_listener(name) and base_name(name).startswith(_WHOSE_TOKENS)
    if is_of_tokens or is_read_only(name):
        # Kafka's text, which its own tests compare.
        return f"Cannot update these configs dynamically: [{name}]"
    row = ROWS.get(name)
    if row is not None and row.of_listener is OfListener.ONLY:
        return (
            f"{name} can be changed only for single listeners: set listener.name.<listener>.{name}"
        )
    if row is None and name.startswith("wirebroker."):
        return f"{name} is not a config"
    return None


def _value_refusal(name: str, value: str) -> str | None:
    row = row_of(name)
    if row is not None:
        try:
            replace(row, name=name).parse(value)
        except ConfigError as error:
            return str(error)
    if asking_names({name: value}):
        return f"{name} requires protection that is not available"
    row = ROWS.get(name)
    if row is not None and row.classes is not None and value.strip() not in row.classes:
        return f"{name}={value} cannot be used: the class is not supported"
    return None


def _is_for_single_brokers(name: str) -> bool:
    row = row_of(name)
    if is_of_a_listener(name):
        return row is None or row.of_listener is not OfListener.CLUSTER_WIDE
    return row is not None and row.mutability is Mutability.PER_BROKER


def _check_step(old: Config, new: Config) -> None:
    for name in _THREADS:
        _check_threads(name, old.set_or_default(name), new.set_or_default(name))
    _check_local_retention(new)
    for listener in _check_listeners(old, new):
        for name in _THREADS_OF_LISTENERS:
            _check_threads(
                listener_config(listener.name, name),
                old.listener_int(listener.name, name),
                new.listener_int(listener.name, name),
            )
        for name in READ_PER_LISTENER:
            if new.listener_int(listener.name, name) <= 0:
                raise ConfigError(
                    f"{name}=0 cannot be used: {listener.name} would accept no connections"
                )


def _check_threads(name: str, old: object, new: object) -> None:
    assert isinstance(old, int)
    assert isinstance(new, int)
    if new == old:
        return
    if not old // 2 <= new <= old * 2:
        raise ConfigError(
            f"{name}={new} cannot be used: from {old} it can change to {max(1, old // 2)} to "
            f"{old * 2}"
        )


def _check_local_retention(new: Config) -> None:
    settings = new.topic_settings({})
    for name, total_retention in (
        ("log.local.retention.ms", settings.retention_ms),
        ("log.local.retention.bytes", settings.retention_bytes),
    ):
        local = new.int(name)
        if total_retention >= 0 and local != -2 and (local == -1 or local > total_retention):
            raise ConfigError(
                f"{name}={local} cannot be used: it must not exceed the total retention, "
                f"{total_retention}"
            )


def _check_listeners(old: Config, new: Config) -> tuple[ListenerConfig, ...]:
    """Return the new listeners.

    The broker's registration cannot change at run time, so advertised listeners keep their address,
    with `advertised.listeners=auto` all of them.
    """
    before = {listener.name: listener for listener in listeners_of(old)}
    after = listeners_of(new)
    for listener in after:
        old_listener = before.get(listener.name)
        if old_listener is not None and old_listener.protocol != listener.protocol:
            raise ConfigError(
                f"listener.security.protocol.map: the protocol of {listener.name} cannot be "
                "changed while the broker runs"
            )
    if is_auto(new):
        addresses = {listener.name: (listener.host, listener.port) for listener in after}
        for listener in listeners_of(new.with_dynamic(cluster_wide={}, this_broker={})):
            if addresses.get(listener.name) != (listener.host, listener.port):
                raise ConfigError(
                    f"listeners: {listener.name} is registered with the cluster and cannot change "
                    "until a restart"
                )
    return after
