"""Changes of configs: of topics, brokers, groups and client metrics."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from wirebroker.base.text import counted
from wirebroker.client.configs.configs import (
    BROKER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
    alter_configs,
    check_names,
    configs_of,
    label,
)
from wirebroker.client.errors import did_you_mean
from wirebroker.client.topics.topic_lookup import find_topics
from wirebroker.console.changes.change import (
    ChangeError,
    ChangeKind,
    ConsoleRole,
    Field,
    FieldKind,
    PreparedChange,
)
from wirebroker.console.changes.command_line import verb_line
from wirebroker.console.changes.field_values import lines_of, settings_of
from wirebroker.console.view.formats import duration_ms, size

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.client.configs.configs import ConfigEntry
    from wirebroker.console.model.collector import Collector
    from wirebroker.console.model.settings import ClusterSettings

# As `wirebroker config` names them.
_WORDS: Final = {BROKER: "broker", GROUP: "group", CLIENT_METRICS: "client-metrics"}
_ALL_BROKERS: Final = "all"
_HIDDEN: Final = "(hidden)"
_NOT_SET: Final = "not set"


async def _prepare(
    kind: int, target: str, collector: Collector, values: Mapping[str, str]
) -> PreparedChange:
    name = _name_of(kind, values[target], target)
    client = collector.client
    if kind == TOPIC:  # the response for a missing topic is misleading
        await find_topics(client, [name])
    current = {
        config.name: config for config in await configs_of(client, kind, name, synonyms=True)
    }
    changes = _changes_of(values, current)
    check_names(kind, changes, current.values())
    warnings = await _unknown_names(collector, name, changes) if kind == BROKER else ()
    effective = {
        config: value for config, value in changes.items() if not _is_kept(current, config, value)
    }
    if not effective:
        raise ChangeError("these configs have these values already: nothing would change", "set")
    await alter_configs(client, kind, name, effective, validate_only=True)

    async def apply() -> str:
        await alter_configs(client, kind, name, effective)
        return f"{counted(len(effective), 'config')} of {label(kind, name)} changed"

    return PreparedChange(
        f"Change {counted(len(effective), 'config')} of {label(kind, name)}",
        tuple(_line(config, current.get(config), value) for config, value in effective.items()),
        _command(collector.settings, kind, values[target], _without_secrets(effective, current)),
        apply,
        warnings=warnings,
    )


def _name_of(kind: int, text: str, field: str) -> str:
    if kind != BROKER:
        return text
    if text == _ALL_BROKERS:
        return ""
    if not (text.isascii() and text.isdigit() and len(text) < 11):
        raise ChangeError(f"{text[:40]!r} is not a broker: write its id, or {_ALL_BROKERS}", field)
    return text


def _changes_of(
    values: Mapping[str, str], current: Mapping[str, ConfigEntry]
) -> dict[str, str | None]:
    """Return the new value of each config, None for its default."""
    changes: dict[str, str | None] = {**settings_of(values, "set")}
    for name in changes:
        if name in current and current[name].is_sensitive:
            raise ChangeError(
                f"{name} is a secret: enter its name and value in the fields for a secret", "set"
            )
    secret_name, secret = values["secret_name"], values["secret_value"]
    if bool(secret_name) != bool(secret):
        raise ChangeError("a secret needs its name and its value", "secret_name")
    removed = dict.fromkeys(lines_of(values, "unset"))
    added = {secret_name: secret} if secret_name else {}
    for name in (*removed, *added):
        if name in changes or (name in removed and name in added):
            raise ChangeError(f"{name[:100]} is named twice", "unset")
    changes |= {**removed, **added}
    if not changes:
        raise ChangeError("write at least one config to set or to reset", "set")
    return changes


def _is_kept(current: Mapping[str, ConfigEntry], name: str, value: str | None) -> bool:
    config = current.get(name)
    if value is None:
        return config is None or not config.is_set
    return config is not None and config.is_set and config.value == value


async def _unknown_names(
    collector: Collector, name: str, changes: Mapping[str, str | None]
) -> tuple[str, ...]:
    """Return a warning for each config that brokers do not have: they accept them, for plugins."""
    client = collector.client
    broker = name or str((await client.broker_ids())[0])
    known = [config.name for config in await configs_of(client, BROKER, broker)]
    return tuple(
        f"Brokers have no config {config}{did_you_mean(config, known)}. They keep it, but only a"
        " plugin can use it."
        for config in changes
        # A listener's configs have its name before theirs.
        if config not in known and not config.startswith("listener.name.")
    )


# --- text


def _line(name: str, config: ConfigEntry | None, value: str | None) -> str:
    before = _NOT_SET if config is None else _shown(config, config.value)
    source = f" ({config.source})" if config is not None and not config.is_set else ""
    if value is None:
        return f"{name}: {before} → {_fallback(config)} (default)"
    return f"{name}: {before}{source} → {_shown(config, value)}"


def _fallback(config: ConfigEntry | None) -> str:
    """Return the value after a reset: of the next source, as far as it is known."""
    if config is None or len(config.synonyms) < 2:
        return _NOT_SET
    return _shown(config, config.synonyms[1].value)


def _shown(config: ConfigEntry | None, value: str | None) -> str:
    if config is None or config.is_sensitive:
        return _HIDDEN
    if value is None:
        return _NOT_SET
    if value == "":
        return "(empty)"
    return f"{value}{_explained(config.name, value)}"


def _explained(name: str, value: str) -> str:
    """Return a long number of ms or bytes in larger units."""
    if not (value.isascii() and value.isdigit() and 4 <= len(value) <= 15):
        return ""
    if name.endswith(".ms"):
        return f" = {duration_ms(int(value))}"
    return f" = {size(int(value))}" if name.endswith(".bytes") else ""


def _without_secrets(
    changes: Mapping[str, str | None], current: Mapping[str, ConfigEntry]
) -> dict[str, str | None]:
    return {
        name: value if value is None or not _is_secret(current.get(name)) else _HIDDEN
        for name, value in changes.items()
    }


def _is_secret(config: ConfigEntry | None) -> bool:
    """Return whether a value is hidden; of an unknown config it may be a secret."""
    return config is None or config.is_sensitive


def _command(
    settings: ClusterSettings, kind: int, name: str, changes: Mapping[str, str | None]
) -> str:
    texts = [f"{config}={value}" for config, value in changes.items() if value is not None]
    removed = [config for config, value in changes.items() if value is None]
    if kind == TOPIC:
        flags = [part for text in texts for part in ("-c", text)]
        flags += [part for config in removed for part in ("--unset", config)]
        return verb_line(settings, "topic alter", flags, [name])
    commands = [("config set", texts), ("config unset", removed)]
    return " && ".join(
        verb_line(settings, verb, [], [_WORDS[kind], name, *words])
        for verb, words in commands
        if words
    )


# --- kinds


def _fields(target: Field) -> tuple[Field, ...]:
    return (
        target,
        Field(
            "set",
            "Set",
            FieldKind.LONG_TEXT,
            "A line for each config, such as retention.ms=86400000.",
            is_required=False,
        ),
        Field(
            "unset",
            "Reset to the default",
            FieldKind.LONG_TEXT,
            "A line with the name of each config.",
            is_required=False,
        ),
        Field(
            "secret_name",
            "Secret config",
            help="The name of a config with a secret value, such as a password.",
            is_required=False,
        ),
        Field(
            "secret_value",
            "Its value",
            FieldKind.PASSWORD,
            "It is not shown, and not written to the audit log.",
            is_required=False,
        ),
    )


KINDS: Final[tuple[ChangeKind, ...]] = (
    ChangeKind(
        "alter-topic-configs",
        "Change configs of a topic",
        ConsoleRole.OPERATOR,
        _fields(Field("topic", "Topic")),
        "topic",
        partial(_prepare, TOPIC, "topic"),
        "topics",
        "topic",
    ),
    ChangeKind(
        "alter-broker-configs",
        "Change configs of brokers",
        ConsoleRole.ADMIN,
        _fields(Field("broker", "Broker", help="Its id, or all for the default of all brokers.")),
        "broker",
        partial(_prepare, BROKER, "broker"),
        "brokers",
    ),
    ChangeKind(
        "alter-group-configs",
        "Change configs of a group",
        ConsoleRole.OPERATOR,
        _fields(Field("group", "Group", help="It need not exist yet.")),
        "group",
        partial(_prepare, GROUP, "group"),
        "groups",
    ),
    ChangeKind(
        "alter-client-metrics",
        "Change which metrics clients push",
        ConsoleRole.ADMIN,
        _fields(
            Field(
                "subscription",
                "Subscription",
                help="A name of your choice; without configs it is deleted.",
            )
        ),
        "subscription",
        partial(_prepare, CLIENT_METRICS, "subscription"),
        "brokers",
    ),
)
