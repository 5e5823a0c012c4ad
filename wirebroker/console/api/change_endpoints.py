"""Changes by the HTTP interface."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from wirebroker.client.errors import ClientError
from wirebroker.console.api.json_responses import error_response, failure_response
from wirebroker.console.audit.audit_log import AuditError
from wirebroker.console.changes.change import ChangeError, FieldKind
from wirebroker.console.changes.kinds.table import CHANGES
from wirebroker.console.changes.making.kept import hidden_plan
from wirebroker.console.changes.making.preparing import prepared_change
from wirebroker.console.changes.making.runner import NOBODY, BusyError
from wirebroker.console.changes.making.values import checked_values, values_of_json
from wirebroker.console.pages.changes import allowed_kind, author_of, other_of
from wirebroker.console.pages.page import (
    allowed_changes,
    collector_of,
    console_of,
    other_clusters,
    viewer_of,
    visible_collectors,
)
from wirebroker.console.pages.request_body import sent_json

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from wirebroker.console.changes.change import ChangeKind, PreparedChange
    from wirebroker.console.changes.making.change_run import ChangeRun

# A longer change is reported as running, with its address.
_PATIENCE_S: Final = 30.0


async def kinds(_request: Request) -> Response:
    """Return the kinds of changes with their fields."""
    return JSONResponse({"changes": [_kind(kind) for kind in CHANGES.values()]})


def _kind(kind: ChangeKind) -> dict[str, Any]:
    return {
        "name": kind.name,
        "title": kind.title,
        "role": kind.role.name.lower(),
        "fields": [
            {
                "name": field.name,
                "label": field.label,
                # The clusters differ by user and cluster.
                "kind": (FieldKind.TEXT if field.name == kind.other_cluster else field.kind).value,
                "help": field.help,
                "is_required": field.is_required,
                "default": field.default,
                "choices": [value for value, _ in field.choices],
            }
            for field in kind.fields
        ],
    }


async def make(request: Request) -> Response:
    """Make a change; with `?dry-run=true`, return what it would do."""
    kind = allowed_kind(request)
    collector = collector_of(request)
    is_dry_run = _is_dry_run(request)
    try:
        values = checked_values(kind, values_of_json(kind, await sent_json(request)))
        others = other_clusters(request, kind.name)
        prepared = await prepared_change(kind, collector, values, others)
    except (ChangeError, ClientError) as error:
        return failure_response(error)
    if is_dry_run:
        return JSONResponse(_plan(kind, prepared) | {"dry_run": True})
    runner = console_of(request).runner
    other = other_of(request, kind, values, others)
    try:
        run = await runner.begin(kind, collector, values, prepared, author_of(request), other)
    except (AuditError, BusyError) as error:
        return error_response(503, str(error))
    with suppress(TimeoutError):
        await asyncio.wait_for(run.ended.wait(), _PATIENCE_S)
    return _run_response(request, run)


def _is_dry_run(request: Request) -> bool:
    text = request.query_params.get("dry-run", "false")
    if text not in {"true", "false"}:
        raise HTTPException(400, "dry-run must be true or false")
    return text == "true"


async def run(request: Request) -> Response:
    """Return a change that runs or has ended lately."""
    return JSONResponse(_run(request, _run_of(request)))


async def stop(request: Request) -> Response:
    """Stop a change that runs."""
    stopped = _run_of(request)
    if not allowed_changes(request).allows(stopped.kind.name):
        raise HTTPException(403, f"this needs the role {stopped.kind.role.name.lower()}")
    if not stopped.is_visible_in(visible_collectors(request)):
        raise HTTPException(403, "this needs a role in both clusters of the change")
    stopped.stop(by=viewer_of(request).name or NOBODY)
    with suppress(TimeoutError):
        await asyncio.wait_for(stopped.ended.wait(), _PATIENCE_S)
    return JSONResponse(_run(request, stopped))


def _run_of(request: Request) -> ChangeRun:
    collector = collector_of(request)
    found = console_of(request).runner.get(request.path_params["run"], collector.settings.name)
    if found is None:
        raise HTTPException(404, "there is no such change since the console's start")
    return found


def _plan(kind: ChangeKind, prepared: PreparedChange) -> dict[str, Any]:
    return {
        "change": kind.name,
        "summary": prepared.summary,
        "lines": prepared.lines,
        "warnings": prepared.warnings,
        "notes": prepared.notes,
        "command": prepared.command,
    }


def _run(request: Request, change: ChangeRun) -> dict[str, Any]:
    shows_details = change.is_visible_in(visible_collectors(request))
    plan = change.prepared if shows_details else hidden_plan(change.kind)
    message = change.progress if change.is_running else change.message
    return _plan(change.kind, plan) | {
        "run": change.run_id,
        "target": change.sides[request.path_params["cluster"]].target,
        "result": change.result,
        "message": message if shows_details else "",
    }


def _run_response(request: Request, change: ChangeRun) -> Response:
    if change.is_running:
        address = f"/api/v1/clusters/{change.cluster}/runs/{change.run_id}"
        return JSONResponse(_run(request, change), 202, {"Location": address})
    if change.result != "done":
        return error_response(409, change.message, result=change.result, run=change.run_id)
    return JSONResponse(_run(request, change))
