"""Internal topics of streams groups, which their deletion or reset may delete too."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from wirebroker.cli.kafka.plumbing.java_map import in_map_order
from wirebroker.cli.kafka.plumbing.java_words import thrown
from wirebroker.client.errors import ClientError
from wirebroker.client.groups.streams_groups import describe_streams_group
from wirebroker.client.topics.topics import delete_topics

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from wirebroker.cli.plumbing.output import Output
    from wirebroker.client.kafka_client import KafkaClient

# The names that Kafka Streams gives to internal topics, after the application's id.
_INTERNAL: Final = re.compile(
    r".*(-changelog|-repartition|-subscription-registration-topic|-subscription-response-topic)"
    r"|.+-KTABLE-FK-JOIN-SUBSCRIPTION-(REGISTRATION|RESPONSE)-\d+-topic"
)


async def internal_topics_of(
    client: KafkaClient, out: Output, names: Iterable[str]
) -> dict[str, list[str]]:
    """Return the internal topics of each group that has some; report others."""
    topics_of: dict[str, list[str]] = {}
    for name in names:
        group = await describe_streams_group(client, name)
        sources = {topic for sub in group.subtopologies for topic in sub.source_topics}
        internal: list[str] = []
        for subtopology in group.subtopologies:
            for topic in (*subtopology.repartition_topics, *subtopology.changelog_topics):
                if topic in sources:
                    continue
                if topic.startswith(f"{name}-") and _INTERNAL.fullmatch(topic):
                    internal.append(topic)
                    continue
                out.line(
                    f"\nError: The internal topic '{topic}' is not inferred as internal and thus"
                    f" will not be deleted with the group '{name}'."
                )
        if internal:
            topics_of[name] = list(dict.fromkeys(internal))
    return topics_of


async def delete_internal_topics(
    client: KafkaClient, out: Output, topics_of: Mapping[str, Sequence[str]], deleted: Sequence[str]
) -> dict[str, str]:
    """Delete the internal topics of deleted groups; return the error of each group that has one."""
    failures: dict[str, str] = {}
    for name in in_map_order(deleted, str):
        for topic in topics_of.get(name, ()):
            try:
                await delete_topics(client, [topic])
            except ClientError as error:
                if not error.code:
                    raise
                out.line(f"Failed to delete internal topic: {topic}")
                failures.setdefault(name, thrown(error))
    return failures


def outcome_of_deletion(names: Sequence[str], failures: Mapping[str, str]) -> list[str]:
    """Return the outcome of deleting the internal topics of these groups."""
    if failures:
        return [
            "Deletion of some associated internal topics failed:",
            *(
                f"* Internal topics of the streams group '{name}' could not be deleted due to:"
                f" {failures[name]}"
                for name in in_map_order(failures, str)
            ),
        ]
    groups = "', '".join(in_map_order(names, str))
    return [
        f"Deletion of associated internal topics of the streams groups ('{groups}') was successful."
    ]
