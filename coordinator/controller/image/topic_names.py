"""Valid topic names, and Kafka's internal topics.

Source: Kafka's Topic class and ReplicationControlManager.validateNewTopicNames.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from wirebroker.codecs.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Iterable

CLUSTER_METADATA_TOPIC = "__cluster_metadata"
INTERNAL_TOPICS = frozenset(("__consumer_offsets", "__transaction_state", "__share_group_state"))
# The limit of file names, 255 bytes, less room for "-<partition>".
MAX_NAME_LENGTH = 249
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def check_topic_name(name: str) -> None:
    """Refuse an invalid name.

    Raises:
        KafkaError: INVALID_TOPIC_EXCEPTION.
    """
    if not name:
        problem = "a topic name cannot be empty"
    elif name in {".", ".."}:
        problem = "a topic name cannot be '.' or '..'"
    elif len(name) > MAX_NAME_LENGTH:
        problem = (
            f"the topic name has {len(name)} characters, more than the {MAX_NAME_LENGTH} allowed"
        )
    elif not _LEGAL.fullmatch(name):
        problem = f"'{name}' has characters other than ASCII letters, digits, '.', '_' and '-'"
    else:
        return
    raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {problem}")


def is_internal(name: str) -> bool:
    """Return whether it is an internal topic."""
    return name in INTERNAL_TOPICS


def has_collision_characters(name: str) -> bool:
    """Return whether the name could collide: metric names equate '.' and '_'."""
    return "." in name or "_" in name


def collision_key(name: str) -> str:
    """Return the common form of colliding names."""
    return name.replace(".", "_")


def collisions(names: Iterable[str]) -> dict[str, str]:
    """Return the names that could collide, by collision key."""
    return {collision_key(name): name for name in names if "." in name or "_" in name}
