"""An action of the console in a test: its link, form, plan and result."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wirebroker.console.changes.kinds.table import CHANGES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    from compat_tests.console.actions.action_cluster import ActionCluster
    from wirebroker.console.changes.change import ChangeKind

    # Prepares resources with names that begin with a given one; yields a check of the result.
    Arrange = Callable[[ActionCluster, str], AbstractContextManager[Callable[[], bool]]]


class BrowserAction(NamedTuple):
    """A kind of change, on a cluster of three brokers; `{name}` in texts is the test case's name.

    Attributes:
        kind: Its name in `CHANGES`.
        page: The page below the cluster that has the link to the form.
        link: The link's accessible name.
        plan: A text of the plan.
        command: A text of the command line.
        result: A text of the result.
        arrange: Prepares what it changes.
        values: The entered values; other fields keep the values of the link.
        checkboxes: Those that are checked first; `link` is then the name of a button.
        secret: A value that must not be in the plan and in the audit log.
        needs_test_mode: Whether it needs a broker in test mode, which Apache Kafka does not have.
        always_allowed: Why no missing right in Kafka prevents it, or "".
    """

    kind: str
    page: str
    link: str
    plan: str
    command: str
    result: str
    arrange: Arrange
    values: Mapping[str, str] = {}
    checkboxes: tuple[str, ...] = ()
    secret: str = ""
    needs_test_mode: bool = False
    always_allowed: str = ""

    @property
    def change(self) -> ChangeKind:
        return CHANGES[self.kind]

    def filled(self, name: str) -> BrowserAction:
        """Return the action with a name in its texts."""

        def fill(text: str) -> str:
            return text.replace("{name}", name)

        return self._replace(
            page=fill(self.page),
            checkboxes=tuple(map(fill, self.checkboxes)),
            link=fill(self.link),
            plan=fill(self.plan),
            command=fill(self.command),
            result=fill(self.result),
            values={field: fill(value) for field, value in self.values.items()},
        )
