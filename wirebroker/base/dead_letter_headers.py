"""Headers of dead letters: where a record was, who could not process it, and why.

Source: Kafka's ShareGroupDLQStateManager.ProduceRequestHandler; KIP-1191.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

DEAD_LETTER_PREFIX: Final = "__dlq.errors."


def dead_letter_headers(
    *, topic: str, partition: int, offset: int, group: str, delivery_count: int, message: str
) -> tuple[tuple[str, bytes], ...]:
    """Return the headers; `message` is the reason."""
    return (
        ("__dlq.errors.topic", topic.encode()),
        ("__dlq.errors.partition", b"%d" % partition),
        ("__dlq.errors.offset", b"%d" % offset),
        ("__dlq.errors.group", group.encode()),
        ("__dlq.errors.delivery.count", b"%d" % delivery_count),
        ("__dlq.errors.message", message.encode()),
    )


def read_dead_letter_headers(headers: Sequence[tuple[str, bytes | None]]) -> dict[str, str]:
    """Return the headers of a dead letter as texts, by their names without the prefix."""
    return {
        name.removeprefix(DEAD_LETTER_PREFIX): (value or b"").decode(errors="replace")
        for name, value in headers
        if name.startswith(DEAD_LETTER_PREFIX)
    }
