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
from wirebroker.console.changes.kinds.config_state import ConfigState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from wirebroker.console.model.collector import Collector
    from wirebroker.console.model.settings import ClusterSettings

# As `wirebroker config` names them.
_WORDS: Final = {BROKER: "broker", GROUP: "group", CLIENT_METRICS: "client-metrics"}
_ALL_BROKERS: Final = "all"


async def _prepare(
    kind: int, target: str, collector: Collector, values: Mapping[str, str]
) -> PreparedChange:
    name = _name_of(kind, values[target], target)
    client = collector.client
    if kind == TOPIC:  # the response for a missing topic is misleading
        await find_topics(client, [name])
    state = await _state(collector, kind, name)
    changes = _changes_of(values, state)
    check_names(kind, changes, state.known.values())
    for config, value in changes.items():
        if value is None and state.is_shared(config):
            raise ChangeError(f"{config} is set for all brokers: reset it there", "unset")
    effective = {config: value for config, value in changes.items() if not state.has(config, value)}
    if not effective:
        raise ChangeError("these configs have these values already: nothing would change", "set")
    await alter_configs(client, kind, name, effective, validate_only=True)

    async def apply() -> str:
        await alter_configs(client, kind, name, effective)
        return f"{counted(len(effective), 'config')} of {label(kind, name)} changed"

    return PreparedChange(
        f"Change {counted(len(effective), 'config')} of {label(kind, name)}",
        tuple(state.line(config, value) for config, value in effective.items()),
        _command(collector.settings, kind, values[target], state.without_secrets(effective)),
        apply,
        warnings=(
            *_deletions(effective, state),
            *(_unknown_names(effective, state) if kind == BROKER else ()),
        ),
        logged={"set": "\n".join(_texts(state.without_secrets(changes)))},
    )


async def _state(collector: Collector, kind: int, name: str) -> ConfigState:
    client = collector.client
    current = await configs_of(client, kind, name, synonyms=True)
    known = current
    if kind == BROKER and not name:
        # The default of all brokers lists only what is set.
        broker = str((await client.broker_ids())[0])
        known = await configs_of(client, BROKER, broker, synonyms=True)
    return ConfigState(
        {config.name: config for config in current if config.is_set or known is current},
        {config.name: config for config in known},
        is_one_broker=kind == BROKER and bool(name),
    )


def _name_of(kind: int, text: str, field: str) -> str:
    if kind != BROKER:
        return text
    if text == _ALL_BROKERS:
        return ""
    if not (text.isascii() and text.isdigit() and len(text) < 11):
        raise ChangeError(f"{text[:40]!r} is not a broker: write its id, or {_ALL_BROKERS}", field)
    return text


def _changes_of(values: Mapping[str, str], state: ConfigState) -> dict[str, str | None]:
    """Return the new value of each config, None for its default."""
    changes: dict[str, str | None] = {**settings_of(values, "set")}
    for name in changes:
        if name in state.known and state.known[name].is_sensitive:
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


def _deletions(changes: Mapping[str, str | None], state: ConfigState) -> tuple[str, ...]:
    """Return a warning for each change after which records may be deleted."""
    return tuple(
        f"{name}: records that the new value does not keep are deleted, and cannot be restored"
        for name, value in changes.items()
        if state.deletes_records(name, value)
    )


def _unknown_names(changes: Iterable[str], state: ConfigState) -> tuple[str, ...]:
    """Return a warning for each config that brokers do not have: they accept them, for plugins."""
    return tuple(
        f"Brokers have no config {name}{did_you_mean(name, state.known)}. They keep it, but only a"
        " plugin can use it."
        for name in changes
        # A listener's configs have its name before theirs.
        if name not in state.known and not name.startswith("listener.name.")
    )


def _texts(changes: Mapping[str, str | None]) -> list[str]:
    return [f"{config}={value}" for config, value in changes.items() if value is not None]


def _command(
    settings: ClusterSettings, kind: int, name: str, changes: Mapping[str, str | None]
) -> str:
    texts = _texts(changes)
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
