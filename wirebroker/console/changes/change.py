"""What a change is: its role, its fields, what it would do, and doing it.

A kind of change is declared once (`ChangeKind`). The form, the confirmation, the JSON endpoint, the
check of the role and the audit entry are derived from the declaration.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from wirebroker.console.model.collector import Collector

# Of a value in the audit log, and of a text of a change that has ended.
MOST_CHARACTERS: Final = 32 << 10


class ConsoleRole(enum.IntEnum):
    """What a user may do in a cluster; each role includes the ones below it."""

    READER = 1
    OPERATOR = 2
    ADMIN = 3


class FieldKind(enum.Enum):
    """How a field is entered in a form; JSON endpoints take the same values.

    Values are stripped, except LONG_TEXT and PASSWORD. The lines of a LONG_TEXT end with a line
    feed. A YES_NO is "yes" or "no"; JSON endpoints also take true and false.
    """

    TEXT = "text"
    LONG_TEXT = "long-text"
    NUMBER = "number"
    CHOICE = "choice"
    YES_NO = "yes-no"
    PASSWORD = "password"  # noqa: S105 - not one


class Field(NamedTuple):
    """A value that a change needs.

    Attributes:
        name: Its name in forms and JSON.
        label: Its name for people.
        help: One sentence, such as the form of the value.
        default: The value of an empty field that is not required.
        choices: The values of a CHOICE, and their labels.
        is_record: Whether it is a part of a record: the audit log has only its begin.
    """

    name: str
    label: str
    kind: FieldKind = FieldKind.TEXT
    help: str = ""
    is_required: bool = True
    default: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    is_record: bool = False


class ChangeError(ValueError):
    """A change that cannot be made; the message says why and what to do.

    Attributes:
        field: The name of the field that is wrong, if it is one.
    """

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class PreparedChange(NamedTuple):
    """A change that has been checked against the cluster, but not made.

    Attributes:
        summary: One sentence: what will happen.
        lines: Each difference, such as `retention.ms: 604800000 → 86400000`.
        command: The equivalent command line, without secrets.
        apply: Makes the change and returns what was done, one sentence. Raises ClientError.
        warnings: What the user should know first, such as data that is lost.
        notes: Like `lines`, for values that change by themselves, such as end offsets. A user
            who confirmed a plan is asked again if anything but the notes differs.
        progress: Returns what a long change has done so far, such as `1,200 of 5,000 records`; it
            is shown while `apply` runs, and afterwards if a user stopped it. `apply` is then
            cancelled.
        logged: Replaces values in the audit log, such as `(hidden)` for a secret config that is not
            a PASSWORD.
    """

    summary: str
    lines: tuple[str, ...]
    command: str
    apply: Callable[[], Awaitable[str]]
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    progress: Callable[[], str] | None = None
    logged: Mapping[str, str] | None = None


class ChangeKind(NamedTuple):
    """A kind of change.

    Attributes:
        name: Its path, such as `create-topic`.
        title: What its form is called, such as `Create a topic`.
        role: The least role that may make it.
        target: The field that names what is changed, for the audit log, such as `topic`.
        prepare: Checks values against the cluster. The values have each field's name (FieldKind
            says how they look), with defaults in place. Raises ChangeError, or ClientError if the
            cluster refuses.
        section: The section of the navigation, such as `topics`.
        page: The page to return to with the target, such as `topic`; None for the section's list.
        prefill: Returns the values of other fields of a form that is opened with some of them, such
            as the key and value of a record. Raises as `prepare`.
        other_cluster: The field, a CHOICE, that names the cluster in which the change is made, if
            that is not the page's. The user needs the role in both.
        other_target: As `target`, for the entries of the other cluster.
        prepare_between: Replaces `prepare` if `other_cluster` is set; its second argument is the
            other cluster's collector.
    """

    name: str
    title: str
    role: ConsoleRole
    fields: tuple[Field, ...]
    target: str
    prepare: Callable[[Collector, Mapping[str, str]], Awaitable[PreparedChange]]
    section: str
    page: str | None = None
    prefill: Callable[[Collector, Mapping[str, str]], Awaitable[Mapping[str, str]]] | None = None
    other_cluster: str = ""
    other_target: str = ""
    prepare_between: (
        Callable[[Collector, Collector, Mapping[str, str]], Awaitable[PreparedChange]] | None
    ) = None

    def offering(self, clusters: Sequence[str]) -> ChangeKind:
        """Return the kind with these clusters as choices of `other_cluster`."""
        choices = tuple((name, name) for name in clusters)
        fields = tuple(
            field._replace(choices=choices, default=clusters[0] if clusters else "")
            if field.name == self.other_cluster
            else field
            for field in self.fields
        )
        return self._replace(fields=fields)
