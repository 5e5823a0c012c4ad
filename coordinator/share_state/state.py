"""The delivery state of a share group's partition, as values.

Source: Kafka's SharePartitionKey, PersisterStateBatch, PartitionFactory.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from wirebroker.codecs.errors import ErrorCode  # noqa: TC001 - compiled tuples look for it
from wirebroker.codecs.primitives import uuid_from_text, uuid_text

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,20}")
_INT32_END: Final = 1 << 31
# The characters that Java's trim removes.
_JAVA_SPACE: Final = "".join(map(chr, range(0x21)))


class SharePartitionKey(NamedTuple):
    """A partition of a topic as a share group sees it."""

    group_id: str
    topic_id: bytes
    partition: int

    def __str__(self) -> str:
        return f"{self.group_id}:{uuid_text(self.topic_id)}:{self.partition}"

    @classmethod
    def parse(cls, text: str) -> SharePartitionKey:
        """Return the key of a text; the group id may contain colons.

        Raises:
            ValueError: The text is not a key.
        """
        # As Java's split, without empty parts at the end.
        *group, topic_id, partition = text.rstrip(":").split(":")
        group_id = ":".join(group)
        if not group_id.strip(_JAVA_SPACE):
            raise ValueError(f"no group id in {text!r}")
        index = int(partition) if _INTEGER.fullmatch(partition) else _INT32_END
        if not -_INT32_END <= index < _INT32_END:
            raise ValueError(f"not a partition: {partition!r}")
        return cls(group_id, uuid_from_text(topic_id), index)


class StateBatch(NamedTuple):
    """Records with the same delivery state and delivery count."""

    first_offset: int
    last_offset: int
    # Kafka's RecordState: 0 available, 2 acknowledged, 4 archived.
    delivery_state: int
    delivery_count: int

    def fields(self) -> dict[str, int]:
        """Return the fields of messages and records; faster than `_asdict`."""
        first_offset, last_offset, delivery_state, delivery_count = self
        return {
            "first_offset": first_offset,
            "last_offset": last_offset,
            "delivery_state": delivery_state,
            "delivery_count": delivery_count,
        }


class PersistedState(NamedTuple):
    """The result of a read."""

    state_epoch: int
    # -1 if unknown: the share partition decides it by share.auto.offset.reset.
    start_offset: int
    # Always -1: only a summary has it.
    delivery_complete_count: int
    batches: tuple[StateBatch, ...]


class StateWrite(NamedTuple):
    """A change of one share partition's state."""

    state_epoch: int
    leader_epoch: int
    # -1: unchanged.
    start_offset: int
    delivery_complete_count: int
    batches: tuple[StateBatch, ...]


class StateSummary(NamedTuple):
    """The result of a read without batches."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int


class StateError(NamedTuple):
    """The error of one partition."""

    code: ErrorCode
    message: str | None
