"""Makes changes: audit entries before and after, a bound of the time, a way to stop.

A change that has begun continues if its browser leaves: half a change is worse than a whole one.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import OrderedDict
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.client.errors import ClientError
from wirebroker.console.audit.audit_entry import AuditEntry
from wirebroker.console.audit.audit_log import AuditError
from wirebroker.console.changes.change import ChangeError
from wirebroker.console.changes.making.kept import without_work
from wirebroker.console.changes.making.values import logged_values, target_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.base.clock import Clock
    from wirebroker.console.audit.audit_log import AuditLog
    from wirebroker.console.changes.change import ChangeKind, PreparedChange
    from wirebroker.console.model.collector import Collector

logger = logging.getLogger("wirebroker")

LONGEST_S: Final = 3600.0
# The name, in texts, of a user without a login.
NOBODY: Final = "a user without a login"
_MOST_RUNNING: Final = 20
_MOST_KEPT: Final = 200


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


class BusyError(Exception):
    """Too many changes are running."""


class ChangeRun:
    """A change that is being made, or was.

    Attributes:
        run_id: For pages and the audit log.
        result: `running`, `done`, `failed`, `stopped` or `timed-out`.
        message: The change's own sentence, or why it failed; empty while it runs.
        stopped_by: Who stopped it, or None.
        work: Makes the change; cancelled to stop it.
        task: Waits for `work` and writes the result; never cancelled.
    """

    __slots__ = (
        "author",
        "began_ms",
        "cluster",
        "ended",
        "kind",
        "message",
        "prepared",
        "result",
        "run_id",
        "stopped_by",
        "target",
        "task",
        "values",
        "work",
    )

    def __init__(  # noqa: PLR0917
        self,
        kind: ChangeKind,
        cluster: str,
        values: Mapping[str, str],
        prepared: PreparedChange,
        author: ChangeAuthor,
        began_ms: int,
    ) -> None:
        self.run_id = secrets.token_hex(8)
        self.kind = kind
        self.cluster = cluster
        self.target = target_text(kind, values)
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
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return not self.ended.is_set()

    @property
    def progress(self) -> str:
        """What a long change has done so far; empty if it does not say."""
        return "" if self.prepared.progress is None else self.prepared.progress()

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


class ChangeRunner:
    """Makes the changes of all users, and keeps the last results."""

    # laws: len(_runs) <= _MOST_KEPT; at most _MOST_RUNNING of them run

    __slots__ = ("_clock", "_runs", "audit")

    def __init__(self, audit: AuditLog, clock: Clock) -> None:
        self.audit = audit
        self._clock = clock
        self._runs: OrderedDict[str, ChangeRun] = OrderedDict()

    async def begin(
        self,
        kind: ChangeKind,
        collector: Collector,
        values: Mapping[str, str],
        prepared: PreparedChange,
        author: ChangeAuthor,
    ) -> ChangeRun:
        """Write the first audit entry and begin the change.

        Raises:
            BusyError: Too many changes are running.
            AuditError: The entry cannot be written; nothing was changed.
        """
        if sum(run.is_running for run in self._runs.values()) >= _MOST_RUNNING:
            raise BusyError(f"{_MOST_RUNNING} changes are running: wait for one to end, or stop it")
        run = ChangeRun(
            kind, collector.settings.name, values, prepared, author, self._clock.now_ms()
        )
        self._keep(run)
        try:
            await self.audit.write(_entry(run, "begin", collector))
        except BaseException:
            run.ended.set()
            del self._runs[run.run_id]
            raise
        run.work = asyncio.create_task(_applied(prepared), name=f"change {kind.name}")
        run.task = asyncio.create_task(self._make(run, collector), name=f"end of {kind.name}")
        return run

    def get(self, run_id: str, cluster: str) -> ChangeRun | None:
        """Return a change of a cluster that runs or ended lately."""
        run = self._runs.get(run_id)
        return run if run is not None and run.cluster == cluster else None

    def of_cluster(self, cluster: str) -> list[ChangeRun]:
        """Return the changes of a cluster that run or ended lately, the newest first."""
        return [run for run in reversed(self._runs.values()) if run.cluster == cluster]

    async def close(self) -> None:
        """Stop all changes, and wait until their ends are in the audit log."""
        tasks = [run.task for run in self._runs.values() if run.task is not None]
        for run in self._runs.values():
            run.stop(by="the end of the console")
        await asyncio.gather(*tasks, return_exceptions=True)
        try:
            await self.audit.write_kept()
        except AuditError as error:
            logger.error(  # noqa: TRY400 - the disk's failure, not a bug
                "ends of changes are not in the audit log: %s", error
            )
        self.audit.close()

    def _keep(self, run: ChangeRun) -> None:
        self._runs[run.run_id] = run
        for run_id, kept in list(self._runs.items()):
            if len(self._runs) <= _MOST_KEPT:
                break
            if not kept.is_running:
                del self._runs[run_id]

    async def _make(self, run: ChangeRun, collector: Collector) -> None:
        assert run.work is not None
        try:
            async with asyncio.timeout(LONGEST_S):
                run.result, run.message = "done", await run.work
        except (ChangeError, ClientError) as error:
            run.result, run.message = "failed", str(error)
        except TimeoutError:
            run.result = "timed-out"
            run.message = _stopped_text(run, f"it took longer than {LONGEST_S / 60:g} minutes")
        except asyncio.CancelledError:
            run.result = "stopped"
            run.message = _stopped_text(run, f"it was stopped by {run.stopped_by or NOBODY}")
        except Exception:  # the root of a task
            logger.exception("change %s of cluster %s failed", run.kind.name, run.cluster)
            run.result = "failed"
            run.message = "the console failed to make the change; see its log"
        await self._end(run, collector)

    async def _end(self, run: ChangeRun, collector: Collector) -> None:
        try:
            await self.audit.write_or_keep(_entry(run, "end", collector))
        except AuditError as error:
            logger.error(  # noqa: TRY400 - the disk's failure, not a bug
                "the end of a change is not in the audit log: %s", error
            )
        finally:
            run.end()
            collector.refresh()


def _stopped_text(run: ChangeRun, reason: str) -> str:
    progress = f" after {run.progress}" if run.progress else ""
    return f"{reason}{progress}; it may have been made in part"


async def _applied(prepared: PreparedChange) -> str:
    return await prepared.apply()


def _entry(run: ChangeRun, event: str, collector: Collector) -> AuditEntry:
    is_end = event == "end"
    return AuditEntry(
        event,
        run.author.name,
        run.author.address,
        run.author.via,
        run.author.role,
        run.run_id,
        run.cluster,
        run.kind.name,
        run.target,
        collector.kafka_user,
        None if is_end else run.values,
        run.result if is_end else None,
        run.message if is_end else run.prepared.summary,
    )
