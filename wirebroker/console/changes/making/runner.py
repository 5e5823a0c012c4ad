"""Makes changes: audit entries before and after, a bound of the time, a way to stop.

A change that has begun continues if its browser leaves: half a change is worse than a whole one.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from wirebroker.client.errors import ClientError
from wirebroker.console.audit.audit_log import AuditError
from wirebroker.console.changes.change import ChangeError
from wirebroker.console.changes.making.change_run import (
    ChangeRun,
    ChangeSide,
    begin_entries,
    end_entries,
)
from wirebroker.console.changes.making.values import target_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.base.clock import Clock
    from wirebroker.console.audit.audit_log import AuditLog
    from wirebroker.console.changes.change import ChangeKind, PreparedChange
    from wirebroker.console.changes.making.change_run import ChangeAuthor
    from wirebroker.console.model.collector import Collector

logger = logging.getLogger("wirebroker")

LONGEST_S: Final = 3600.0
# The name, in texts, of a user without a login.
NOBODY: Final = "a user without a login"
_MOST_RUNNING: Final = 20
_MOST_KEPT: Final = 200


class BusyError(Exception):
    """Too many changes are running."""


class ChangeRunner:
    """Makes the changes of all users, and keeps the last results."""

    # laws: len(_runs) <= _MOST_KEPT; at most _MOST_RUNNING of them run

    __slots__ = ("_clock", "_runs", "audit")

    def __init__(self, audit: AuditLog, clock: Clock) -> None:
        self.audit = audit
        self._clock = clock
        self._runs: OrderedDict[str, ChangeRun] = OrderedDict()

    async def begin(  # noqa: PLR0917
        self,
        kind: ChangeKind,
        collector: Collector,
        values: Mapping[str, str],
        prepared: PreparedChange,
        author: ChangeAuthor,
        other: ChangeSide | None = None,
    ) -> ChangeRun:
        """Write the first audit entry and begin the change.

        `other` is the cluster that `ChangeKind.other_cluster` names; it has its own entries.

        Raises:
            BusyError: Too many changes are running.
            AuditError: The entry cannot be written; nothing was changed.
        """
        if sum(run.is_running for run in self._runs.values()) >= _MOST_RUNNING:
            raise BusyError(f"{_MOST_RUNNING} changes are running: wait for one to end, or stop it")
        sides = [ChangeSide(collector, author.role, target_text(kind, values))]
        if other is not None:
            sides.append(other)
        run = ChangeRun(kind, sides, values, prepared, author, self._clock.now_ms())
        self._keep(run)
        try:
            await self._write_begin(run)
        except BaseException:
            run.ended.set()
            del self._runs[run.run_id]
            raise
        run.work = asyncio.create_task(_applied(prepared), name=f"change {kind.name}")
        run.task = asyncio.create_task(self._make(run), name=f"end of {kind.name}")
        return run

    def get(self, run_id: str, cluster: str) -> ChangeRun | None:
        """Return a change of a cluster that runs or ended lately."""
        run = self._runs.get(run_id)
        return run if run is not None and cluster in run.sides else None

    def of_cluster(self, cluster: str) -> list[ChangeRun]:
        """Return the changes of a cluster that run or ended lately, the newest first."""
        return [run for run in reversed(self._runs.values()) if cluster in run.sides]

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

    async def _write_begin(self, run: ChangeRun) -> None:
        """Write the begin entries. If the shutdown cancels this, write end entries (`stopped`)."""
        try:
            await self.audit.write(*begin_entries(run))
        except asyncio.CancelledError:
            run.result, run.message = "stopped", "the console ended before the change began"
            with suppress(AuditError):
                await self.audit.write_or_keep(*end_entries(run))
            raise

    async def _make(self, run: ChangeRun) -> None:
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
        await self._end(run)

    async def _end(self, run: ChangeRun) -> None:
        try:
            await self.audit.write_or_keep(*end_entries(run))
        except AuditError as error:
            logger.error(  # noqa: TRY400 - the disk's failure, not a bug
                "the end of a change is not in the audit log: %s", error
            )
        finally:
            run.end()
            for side in run.sides.values():
                side.collector.refresh()


def _stopped_text(run: ChangeRun, reason: str) -> str:
    progress = f" after {run.progress}" if run.progress else ""
    return f"{reason}{progress}; it may have been made in part"


async def _applied(prepared: PreparedChange) -> str:
    return await prepared.apply()
