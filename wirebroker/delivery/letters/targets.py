"""The topics to which a redrive may send."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.delivery.model.rules import INTERNAL_PREFIX

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable


def redrive_problem(topic: str, targets: Iterable[str], existing: Collection[str]) -> str | None:
    """Return why the dead letters of a topic cannot be sent to targets, or None."""
    for target in sorted(targets):
        if target.startswith(INTERNAL_PREFIX):
            return f"cannot redrive to {target}: it is an internal topic"
        if target == topic:
            return f"cannot redrive to {target}: it is the topic of the dead letters"
        if target not in existing:
            return (
                f"cannot redrive to {target}: there is no such topic, or this login may not"
                " describe it. Create it, grant Describe, or choose another target (--to)"
            )
    return None
