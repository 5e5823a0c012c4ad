"""Changes of topics: create, add partitions, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.base.text import counted, few_of
from wirebroker.client.checks.dry_runs import check_deletable_topics
from wirebroker.client.configs.configs import TOPIC, check_names, configs_of
from wirebroker.client.topics.topic_lookup import find_topics
from wirebroker.client.topics.topics import add_partitions, create_topics, delete_topics
from wirebroker.console.changes.change import (
    MOST_CHARACTERS,
    ChangeError,
    ChangeKind,
    ConsoleRole,
    Field,
    FieldKind,
    PreparedChange,
)
from wirebroker.console.changes.command_line import verb_line
from wirebroker.console.changes.field_values import lines_of, number_of, settings_of
from wirebroker.console.changes.kinds import trims

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from wirebroker.console.model.collector import Collector

# Numbers of the protocol.
_MOST_PARTITIONS: Final = (1 << 31) - 1
_MOST_REPLICAS: Final = (1 << 15) - 1
_BROKERS_DEFAULT: Final = "the brokers' default"
_NOT_RESTORED: Final = "The records cannot be restored."
# What deleting an internal topic loses.
_LOST_STATE: Final = {
    "__consumer_offsets": "all groups lose their members and committed offsets",
    "__transaction_state": "open transactions and the epochs of all transactional ids are lost",
    "__share_group_state": "all share groups lose which records were acknowledged",
}


async def _create(collector: Collector, values: Mapping[str, str]) -> PreparedChange:
    topic = values["topic"]
    partitions = number_of(values, "partitions", 1, _MOST_PARTITIONS)
    replicas = number_of(values, "replicas", 1, _MOST_REPLICAS)
    configs = settings_of(values, "configs")
    client = collector.client
    await _check_config_names(collector, configs)

    async def create(*, validate_only: bool) -> None:
        await create_topics(
            client,
            {topic: partitions or -1},
            replication_factor=replicas or -1,
            configs=configs,
            validate_only=validate_only,
        )

    async def apply() -> str:
        await create(validate_only=False)
        return f"topic {topic} was created"

    await create(validate_only=True)
    flags = [
        *(() if partitions is None else ("-p", str(partitions))),
        *(() if replicas is None else ("-r", str(replicas))),
        *(part for name, value in configs.items() for part in ("-c", f"{name}={value}")),
    ]
    lines = [
        f"partitions: {partitions or _BROKERS_DEFAULT}",
        f"replicas of each partition: {replicas or _BROKERS_DEFAULT}",
        *(f"{name}: {value}" for name, value in configs.items()),
    ]
    command = verb_line(collector.settings, "topic create", flags, [topic])
    return PreparedChange(f"Create topic {topic}", tuple(lines), command, apply)


async def _check_config_names(collector: Collector, configs: Mapping[str, str]) -> None:
    """Check names by the configs of any topic; a cluster without topics checks them itself."""
    known = next(iter(collector.snapshot.topics), None)
    if configs and known is not None:
        check_names(TOPIC, configs, await configs_of(collector.client, TOPIC, known))


async def _add_partitions(collector: Collector, values: Mapping[str, str]) -> PreparedChange:
    topic = values["topic"]
    client = collector.client
    count = number_of(values, "partitions", 1, _MOST_PARTITIONS)
    assert count is not None  # the field is required
    (found,) = await find_topics(client, [topic])
    before = len(found.partitions)
    if count <= before:
        raise ChangeError(
            f"topic {topic} has {counted(before, 'partition')} already: write a higher number",
            "partitions",
        )
    await add_partitions(client, topic, count, validate_only=True)

    async def apply() -> str:
        await add_partitions(client, topic, count)
        return f"topic {topic} has {counted(count, 'partition')}"

    command = verb_line(collector.settings, "topic alter", ["-p", str(count)], [topic])
    return PreparedChange(
        f"Add {counted(count - before, 'partition')} to topic {topic}",
        (f"partitions: {before} → {count}",),
        command,
        apply,
        warnings=(
            "New records of a key can go to another partition than its older ones, so they are no"
            " longer in order.",
            "Partitions cannot be removed again.",
        ),
    )


async def _delete(collector: Collector, values: Mapping[str, str]) -> PreparedChange:
    topic = values["topic"]
    client = collector.client
    (found,) = await find_topics(client, [topic])
    if values["confirm"] != topic:
        raise ChangeError("write the name of the topic here, to confirm its deletion", "confirm")
    await check_deletable_topics(client, [topic])

    async def apply() -> str:
        await delete_topics(client, [topic])
        return f"topic {topic} was deleted"

    known = collector.snapshot.topics.get(topic)
    groups = sorted(known.groups) if known is not None else []
    readers = [f"Groups have offsets in it: {few_of(groups, 5)}."] if groups else []
    return PreparedChange(
        f"Delete topic {topic}",
        (_deleted_text(topic, found),),
        verb_line(collector.settings, "topic delete", ["--yes"], [topic]),
        apply,
        warnings=(_NOT_RESTORED, *_internal_warnings([found]), *readers),
    )


def _deleted_text(name: str, topic: Any) -> str:
    count = len(topic.partitions)
    pronoun = "its" if count == 1 else "their"
    return f"{name}: delete {counted(count, 'partition')} with all {pronoun} records"


def _internal_warnings(topics: Sequence[Any]) -> list[str]:
    """Return a warning for each internal topic, of the response to a metadata request."""
    return [
        f"{topic.name} is an internal topic: "
        f"{_LOST_STATE.get(topic.name, 'the cluster or its clients lose the state that is in it')}."
        for topic in topics
        if topic.is_internal
    ]


async def _delete_several(collector: Collector, values: Mapping[str, str]) -> PreparedChange:
    lines = lines_of(values, "topics")
    names = list(dict.fromkeys(lines))
    if not names:
        raise ChangeError("write at least one topic", "topics")
    if len("\n".join(lines)) > MOST_CHARACTERS:  # the audit log would cut them
        raise ChangeError(
            f"the names have more than {MOST_CHARACTERS:,} characters together: delete fewer topics"
            " at once",
            "topics",
        )
    client = collector.client
    found = await find_topics(client, names)
    if number_of(values, "confirm", 1) != len(names):
        deleted = "this topic is" if len(names) == 1 else f"these {len(names)} topics are"
        raise ChangeError(f"write {len(names)} to confirm that {deleted} deleted", "confirm")
    await check_deletable_topics(client, names)

    async def apply() -> str:
        await delete_topics(client, names)
        return f"{counted(len(names), 'topic')} deleted"

    known = [collector.snapshot.topics[name] for name in names if name in collector.snapshot.topics]
    groups = sorted({group for topic in known for group in topic.groups})
    readers = [f"Groups have offsets in them: {few_of(groups, 5)}."] if groups else []
    return PreparedChange(
        f"Delete {counted(len(names), 'topic')}",
        tuple(_deleted_text(name, topic) for name, topic in zip(names, found, strict=True)),
        verb_line(collector.settings, "topic delete", ["--yes"], names),
        apply,
        warnings=(_NOT_RESTORED, *_internal_warnings(found), *readers),
    )


_TOPIC: Final = Field("topic", "Topic")

KINDS: Final[tuple[ChangeKind, ...]] = (
    ChangeKind(
        "create-topic",
        "Create a topic",
        ConsoleRole.OPERATOR,
        (
            _TOPIC._replace(help="Up to 249 letters, digits, dots, underscores and hyphens."),
            Field(
                "partitions",
                "Partitions",
                FieldKind.NUMBER,
                "If empty, the brokers' default.",
                is_required=False,
            ),
            Field(
                "replicas",
                "Replicas of each partition",
                FieldKind.NUMBER,
                "If empty, the brokers' default.",
                is_required=False,
            ),
            Field(
                "configs",
                "Configs",
                FieldKind.LONG_TEXT,
                "A line for each, such as retention.ms=86400000.",
                is_required=False,
            ),
        ),
        "topic",
        _create,
        "topics",
    ),
    ChangeKind(
        "add-partitions",
        "Add partitions",
        ConsoleRole.OPERATOR,
        (
            _TOPIC,
            Field(
                "partitions", "Partitions", FieldKind.NUMBER, "The new number, higher than today's."
            ),
        ),
        "topic",
        _add_partitions,
        "topics",
        "topic",
    ),
    *trims.KINDS,
    ChangeKind(
        "delete-topic",
        "Delete a topic",
        ConsoleRole.ADMIN,
        (_TOPIC, Field("confirm", "Name of the topic again", help="To confirm its deletion.")),
        "topic",
        _delete,
        "topics",
    ),
    ChangeKind(
        "delete-topics",
        "Delete several topics",
        ConsoleRole.ADMIN,
        (
            Field("topics", "Topics", FieldKind.LONG_TEXT, "A line for each."),
            Field(
                "confirm",
                "Number of topics",
                FieldKind.NUMBER,
                "Type how many topics are listed above, to confirm.",
            ),
        ),
        "topics",
        _delete_several,
        "topics",
    ),
)
