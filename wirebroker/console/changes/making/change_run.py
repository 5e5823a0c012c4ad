"""A change that is being made, or was, and its entries in the audit log."""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING, NamedTuple

from wirebroker.console.audit.audit_entry import AuditEntry
from wirebroker.console.changes.making.kept import without_work
from wirebroker.console.changes.making.values import logged_values

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from wirebroker.console.changes.change import ChangeKind, PreparedChange
    from wirebroker.console.model.collector import Collector


class ChangeAuthor(NamedTuple):
    """Who makes a change.

    Attributes:
        name: The user's or token's name; None without a login.
        role: The user's role in the cluster.
        address: Of the browser or program.
        via: `browser` or `http`.
    """

    name: str | None
    role: str
    address: str
    via: str


class ChangeSide(NamedTuple):
    """A cluster of a change, which has its own audit entries.

    Attributes:
        collector: Of the cluster.
        role: The author's role in it.
        target: The topic or other subject in this cluster; in the source cluster, the topic that is
            read.
    """

    collector: Collector
    role: str
    target: str

    @property
    def cluster(self) -> str:
        """The cluster's name."""
        return self.collector.settings.name


class ChangeRun:
    """A change that is being made, or was.

    Attributes:
        run_id: For pages and the audit log.
        sides: By cluster name; the cluster of the form is first.
        result: `running`, `done`, `failed`, `stopped` or `timed-out`.
        message: The change's own sentence, or why it failed; empty while it runs.
        stopped_by: Who stopped it, or None.
        work: Makes the change; cancelled to stop it.
        task: Waits for `work` and writes the result; never cancelled.
    """

    __slots__ = (
        "author",
        "began_ms",
        "ended",
        "kind",
        "message",
        "prepared",
        "result",
        "run_id",
        "sides",
        "stopped_by",
        "task",
        "values",
        "work",
    )

    def __init__(  # noqa: PLR0917
        self,
        kind: ChangeKind,
        sides: Sequence[ChangeSide],
        values: Mapping[str, str],
        prepared: PreparedChange,
        author: ChangeAuthor,
        began_ms: int,
    ) -> None:
        self.run_id = secrets.token_hex(8)
        self.kind = kind
        self.sides = {side.cluster: side for side in sides}
        self.values = logged_values(kind, {**values, **(prepared.logged or {})})
        self.prepared = prepared
        self.author = author
        self.began_ms = began_ms
        self.ended = asyncio.Event()
        self.stopped_by: str | None = None
        self.result = "running"
        self.message = ""
        self.work: asyncio.Task[str] | None = None
        self.task: asyncio.Task[None] | None = None

    @property
    def cluster(self) -> str:
        """The cluster whose page has the change's form."""
        return next(iter(self.sides))

    @property
    def target(self) -> str:
        """The subject of the change in `cluster`."""
        return self.sides[self.cluster].target

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return not self.ended.is_set()

    @property
    def progress(self) -> str:
        """What a long change has done so far; empty if it does not say."""
        return "" if self.prepared.progress is None else self.prepared.progress()

    def is_visible_in(self, clusters: Container[str]) -> bool:
        """Return whether a user with roles in `clusters` may see the details."""
        return all(name in clusters for name in self.sides)

    def stop(self, *, by: str) -> None:
        """Stop it, if it runs; what it has done remains. `by` is for its message."""
        if self.work is not None and self.result == "running" and self.stopped_by is None:
            self.stopped_by = by
            self.work.cancel()

    def end(self) -> None:
        """Note that its end is in the log, and keep only what pages show of it."""
        self.prepared = without_work(self.prepared)
        self.values = {}
        self.work = self.task = None
        self.ended.set()


def begin_entries(run: ChangeRun) -> list[AuditEntry]:
    """Return the entries that precede a change, one for each cluster."""
    return [
        _entry(run, side, "begin")._replace(values=run.values, message=run.prepared.summary)
        for side in run.sides.values()
    ]


def end_entries(run: ChangeRun) -> list[AuditEntry]:
    """Return the entries with the result of a change, one for each cluster."""
    return [
        _entry(run, side, "end")._replace(result=run.result, message=_end_text(run, side))
        for side in run.sides.values()
    ]


def _entry(run: ChangeRun, side: ChangeSide, event: str) -> AuditEntry:
    return AuditEntry(
        event,
        run.author.name,
        run.author.address,
        run.author.via,
        side.role,
        run.run_id,
        side.cluster,
        run.kind.name,
        side.target,
        side.collector.kafka_user,
        other_cluster=_other_cluster(run, side),
    )


def _end_text(run: ChangeRun, side: ChangeSide) -> str:
    """Return how a change ended in a cluster.

    The cause of a failure may name brokers and users of the other cluster, which makes the change.
    """
    other = _other_cluster(run, side)
    if other is not None and run.result == "failed" and side.cluster == run.cluster:
        return f"it failed in cluster {other}; see the entry of that cluster"
    return run.message


def _other_cluster(run: ChangeRun, side: ChangeSide) -> str | None:
    return next((name for name in run.sides if name != side.cluster), None)
