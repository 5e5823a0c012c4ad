"""Why the broker refused records for good, until they are committed in another form."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.delivery.model.dead_letter import input_dead_letters, without_content

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from wirebroker.delivery.model.records import OutputRecord


class RefusedDeadLetterError(Exception):
    """A dead letter was refused, also without its content."""


class Refusals:
    """Reasons by cause (OutputRecord.cause): of records, and of their dead letters."""

    def __init__(self) -> None:
        self._records: dict[str, str] = {}
        self._letters: dict[str, list[str]] = {}

    def note(self, reasons: Mapping[str, str], letters: Collection[str]) -> None:
        """Add reasons; `letters` are the causes of those records that are dead letters."""
        for cause, reason in reasons.items():
            if cause in letters:
                self._letters.setdefault(cause, []).append(reason)
            else:
                self._records[cause] = reason

    def reason(self, cause: str) -> str | None:
        """Return why a record was refused, or None."""
        return self._records.get(cause)

    def forget(self, causes: Collection[str]) -> None:
        """Forget committed records."""
        for reasons in (self._records, self._letters):
            if reasons:
                for cause in causes:
                    reasons.pop(cause, None)

    def acceptable(self, letter: OutputRecord) -> OutputRecord:
        """Return a dead letter in a form that was not refused yet.

        It is complete for its own topic, then for that of the input, which accepts larger records.
        Then it is without its content.

        Raises:
            RefusedDeadLetterError: There is none.
        """
        refusals = self._letters.get(letter.cause)
        if not refusals:
            return letter
        topics = list(dict.fromkeys((letter.topic, input_dead_letters(letter))))
        if len(refusals) < len(topics):
            return letter._replace(topic=topics[len(refusals)])
        if len(refusals) > len(topics):
            raise RefusedDeadLetterError(
                f"a dead letter of {letter.cause} cannot be written to {topics[-1]}: {refusals[-1]}"
            )
        return without_content(letter, refusals[-1])
