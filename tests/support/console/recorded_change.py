"""A kind of change that notes what it does instead of changing a cluster."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from wirebroker.console.changes.change import (
    ChangeError,
    ChangeKind,
    ConsoleRole,
    Field,
    FieldKind,
    PreparedChange,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.console.model.collector import Collector


class RecordedChange:
    """Plans and makes a change of a topic's note.

    Attributes:
        applied: The values of the changes that were made.
        refusal: Raised by `prepare`, if not None.
        failure: Raised by `apply`, if not None.
        before: The note before the change; plans contain it.
        gate: `apply` waits for it, if not None.
    """

    def __init__(self, role: ConsoleRole = ConsoleRole.OPERATOR) -> None:
        self.applied: list[dict[str, str]] = []
        self.refusal: Exception | None = None
        self.failure: Exception | None = None
        self.before = "old"
        self.end_offset = 0
        self.gate: asyncio.Event | None = None
        self.has_begun = asyncio.Event()
        self.kind = ChangeKind(
            name="note-topic",
            title="Note a topic",
            role=role,
            fields=(
                Field("topic", "Topic"),
                Field("note", "Note", FieldKind.LONG_TEXT, "Any text.", is_required=False),
                Field("count", "Count", FieldKind.NUMBER, is_required=False, default="1"),
                Field("color", "Color", FieldKind.CHOICE, choices=(("r", "Red"), ("g", "Green"))),
                Field("loud", "Loud", FieldKind.YES_NO),
                Field("secret", "Secret", FieldKind.PASSWORD, is_required=False),
            ),
            target="topic",
            prepare=self.prepare,
            section="topics",
            page="topic",
        )

    async def prepare(self, _collector: Collector, values: Mapping[str, str]) -> PreparedChange:
        if self.refusal is not None:
            raise self.refusal
        if values["topic"] == "missing":
            raise ChangeError("there is no topic missing", "topic")
        given = dict(values)

        async def apply() -> str:
            self.has_begun.set()
            if self.gate is not None:
                await self.gate.wait()
            if self.failure is not None:
                raise self.failure
            self.applied.append(given)
            return f"topic {given['topic']} is noted"

        self.end_offset += 1
        return PreparedChange(
            summary=f"topic {given['topic']} gets a note",
            lines=(f"note: {self.before} → {given['note']}",),
            command=f"wirebroker note {given['topic']}",
            apply=apply,
            warnings=("the old note is lost",),
            notes=(f"end offset {self.end_offset}",),
            progress=lambda: "3 of 10 letters",
        )
