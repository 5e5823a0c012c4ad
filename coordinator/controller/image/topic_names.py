"""Which topic names are allowed, and which of them are Kafka's own.

Source: Kafka's Topic class and the check in ReplicationControlManager.validateNewTopicNames.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from wirebroker.codecs.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Iterable

CLUSTER_METADATA_TOPIC = "__cluster_metadata"
INTERNAL_TOPICS = frozenset(("__consumer_offsets", "__transaction_state", "__share_group_state"))
# 255 bytes are a file name's limit; "-<partition>" needs the rest.
MAX_NAME_LENGTH = 249
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def check_topic_name(name: str) -> None:
    """Refuse a name that no topic can have.

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
    """Tell whether Kafka keeps its own state in this topic."""
    return name in INTERNAL_TOPICS


def has_collision_characters(name: str) -> bool:
    """Tell whether the name could collide: '.' and '_' are the same in metric names."""
    return "." in name or "_" in name


def collision_key(name: str) -> str:
    """Return what colliding names have in common."""
    return name.replace(".", "_")


def collisions(names: Iterable[str]) -> dict[str, str]:
    """Map the collision key of each name that could collide to such a name."""
    return {collision_key(name): name for name in names if "." in name or "_" in name}
