"""Why the broker refused records for good, until they are committed in another form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.codecs.errors import ErrorCode
from wirebroker.delivery.model.dead_letter import input_dead_letters, without_content

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from wirebroker.delivery.model.records import OutputRecord

# Errors of a record that another attempt would not change.
FINAL_ERRORS: Final = frozenset(
    {
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.POLICY_VIOLATION,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)


class RefusedDeadLetterError(Exception):
    """A dead letter was refused, also without its content."""


class _Form(NamedTuple):
    """A way to write a dead letter: to a topic, and whether with key, value and headers."""

    topic: str
    is_complete: bool


class Refusals:
    """Reasons by cause (OutputRecord.cause): of records, and of forms of their dead letters."""

    def __init__(self) -> None:
        self._records: dict[str, str] = {}
        self._letters: dict[str, dict[_Form, str]] = {}
        # The form of a dead letter in the last plan.
        self._planned: dict[str, _Form] = {}

    def note(self, reasons: Mapping[str, str], letters: Collection[str]) -> None:
        """Add reasons; `letters` are the causes of those records that are dead letters."""
        for cause, reason in reasons.items():
            if cause not in letters:
                self._records[cause] = reason
            # Forgotten if the transaction that stored the record was seen to commit only now.
            elif (form := self._planned.get(cause)) is not None:
                self._letters.setdefault(cause, {})[form] = reason

    def reason(self, cause: str) -> str | None:
        """Return why a record was refused, or None."""
        return self._records.get(cause)

    def forget(self, causes: Collection[str]) -> None:
        """Forget committed records."""
        for known in (self._records, self._letters, self._planned):
            if known:
                for cause in causes:
                    known.pop(cause, None)

    def acceptable(self, letter: OutputRecord) -> OutputRecord:
        """Return a dead letter in a form that was not refused yet.

        It is complete for its own topic, then for that of the input, which accepts larger records.
        Then it is without its content.

        Raises:
            RefusedDeadLetterError: There is none.
        """
        refusals = self._letters.get(letter.cause, {})
        input_topic = input_dead_letters(letter)
        forms = (
            _Form(letter.topic, is_complete=True),
            _Form(input_topic, is_complete=True),
            _Form(input_topic, is_complete=False),
        )
        form = next((form for form in forms if form not in refusals), None)
        if form is None:
            raise RefusedDeadLetterError(
                f"a dead letter of {letter.cause} cannot be written to {input_topic}:"
                f" {refusals[forms[-1]]}"
            )
        self._planned[letter.cause] = form
        if not form.is_complete:
            return without_content(letter, refusals[forms[1]])
        return letter if form.topic == letter.topic else letter._replace(topic=form.topic)
