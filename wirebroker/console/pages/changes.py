"""Forms of changes, their plans, and their confirmation."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse

from wirebroker.client.errors import ClientError
from wirebroker.console.audit.audit_log import AuditError
from wirebroker.console.changes.change import ChangeError, FieldKind
from wirebroker.console.changes.making.change_run import ChangeAuthor, ChangeSide
from wirebroker.console.changes.making.pending_plans import effect_of
from wirebroker.console.changes.making.preparing import (
    kind_named,
    prefilled_values,
    prepared_change,
)
from wirebroker.console.changes.making.runner import NOBODY, BusyError
from wirebroker.console.changes.making.values import checked_values, values_of_form
from wirebroker.console.pages.change_links import target_url
from wirebroker.console.pages.page import (
    allowed_changes,
    collector_of,
    console_of,
    other_clusters,
    page,
    role_of,
    viewer_of,
    visible_collectors,
)
from wirebroker.console.pages.request_body import SMALL_BODY_BYTES, sent_form
from wirebroker.console.view.links import cluster_url

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from wirebroker.console.changes.change import ChangeKind, Field, PreparedChange
    from wirebroker.console.changes.making.change_run import ChangeRun
    from wirebroker.console.changes.making.pending_plans import PendingPlan
    from wirebroker.console.model.collector import Collector

# A change that takes longer gets a page with its progress.
_PATIENCE_S: Final = 3.0
# The next page waits this long for a snapshot with the change.
_SNAPSHOT_S: Final = 2.0
_MOST_LINES: Final = 1000


async def change_form(request: Request) -> Response:
    """Show the form of a kind of change, with values of the query, or of a plan."""
    kind = allowed_kind(request)
    plan = _plan(request, kind, request.query_params.get("plan", ""))
    values = {field.name: _value_of_link(request, field) for field in kind.fields}
    if plan is not None:
        return _form(request, kind, plan.values)
    try:
        values = await prefilled_values(kind, collector_of(request), values)
    except ChangeError as error:
        return _form(request, kind, values, error=str(error), wrong=error.field)
    except ClientError as error:
        return _form(request, kind, values, error=str(error))
    return _form(request, kind, values)


def _value_of_link(request: Request, field: Field) -> str:
    """Return a field's value in an address; a field of lines may be repeated."""
    values = request.query_params.getlist(field.name)
    if not values:
        return field.default
    return "\n".join(values) if field.kind is FieldKind.LONG_TEXT else values[-1]


async def change_plan(request: Request) -> Response:
    """Show what a change will do, or the form again with what is wrong."""
    kind = allowed_kind(request)
    collector = collector_of(request)
    values = values_of_form(kind, await sent_form(request))
    try:
        checked = checked_values(kind, values)
        prepared = await prepared_change(
            kind, collector, checked, other_clusters(request, kind.name)
        )
    except ChangeError as error:
        return _form(request, kind, values, error=str(error), wrong=error.field)
    except ClientError as error:
        return _form(request, kind, values, error=str(error))
    return _plan_page(request, kind, checked, prepared)


async def change_apply(request: Request) -> Response:
    """Make a change that was confirmed; if it would do something else by now, show that."""
    kind = allowed_kind(request)
    collector = collector_of(request)
    plan_id = (await sent_form(request, most_bytes=SMALL_BODY_BYTES)).get("plan", "")
    plan = _plan(request, kind, plan_id)
    if plan is None:
        raise HTTPException(
            409, "This plan has expired or was applied. Open the form again to make a new one."
        )
    console_of(request).plans.drop(plan_id)
    others = other_clusters(request, kind.name)
    try:
        prepared = await prepared_change(kind, collector, plan.values, others)
    except (ChangeError, ClientError) as error:
        return _form(request, kind, plan.values, error=str(error))
    if effect_of(prepared) != plan.effect:
        return _plan_page(request, kind, plan.values, prepared, has_changed=True)
    other = other_of(request, kind, plan.values, others)
    runner = console_of(request).runner
    try:
        run = await runner.begin(kind, collector, plan.values, prepared, author_of(request), other)
    except (AuditError, BusyError) as error:
        return _form(request, kind, plan.values, error=str(error), status=503)
    return await _redirect(request, run, collector)


def allowed_kind(request: Request) -> ChangeKind:
    """Return the request's kind of change.

    Raises:
        HTTPException: 404, there is no such kind; 403, the user may not make it.
    """
    collector_of(request)
    try:
        kind = kind_named(request.path_params["kind"])
    except ChangeError as error:
        raise HTTPException(404, f"{error}.") from None
    allowed = allowed_changes(request)
    if not allowed.allows(kind.name):
        raise HTTPException(403, refusal_text(kind, is_read_only=allowed.is_read_only))
    return kind.offering(list(other_clusters(request, kind.name))) if kind.other_cluster else kind


def refusal_text(kind: ChangeKind, *, is_read_only: bool) -> str:
    """Return why a user may not make a change."""
    if is_read_only:
        return "The console was started with --read-only: it changes nothing."
    return f"{kind.title}: this needs the role {kind.role.name.lower()} in this cluster."


def author_of(request: Request) -> ChangeAuthor:
    """Return who makes the request's change."""
    viewer = viewer_of(request)
    return ChangeAuthor(
        viewer.name,
        role_of(request).name.lower(),
        viewer.address,
        "http" if viewer.is_program else "browser",
    )


def other_of(
    request: Request,
    kind: ChangeKind,
    values: Mapping[str, str],
    others: Mapping[str, Collector],
) -> ChangeSide | None:
    """Return the other cluster of a prepared change, if it needs one; it is one of `others`."""
    if not kind.other_cluster:
        return None
    name = values[kind.other_cluster]
    role = viewer_of(request).grants.role_in(name)
    assert role is not None
    return ChangeSide(others[name], role.name.lower(), values[kind.other_target])


def _plan(request: Request, kind: ChangeKind, plan_id: str) -> PendingPlan | None:
    return console_of(request).plans.get(
        plan_id,
        cookie=viewer_of(request).cookie,
        cluster=request.path_params["cluster"],
        kind=kind.name,
    )


def _form(
    request: Request,
    kind: ChangeKind,
    values: Mapping[str, str],
    *,
    error: str | None = None,
    wrong: str | None = None,
    status: int = 422,
) -> Response:
    # Passwords are never sent back.
    shown = {
        field.name: "" if field.kind is FieldKind.PASSWORD else values.get(field.name, "")
        for field in kind.fields
    }
    return page(
        request,
        "change_form.html",
        section=kind.section,
        status=200 if error is None else status,
        kind=kind,
        values=shown,
        error=error,
        wrong=wrong,
        back=target_url(collector_of(request), kind, shown.get(kind.target, "")),
    )


def _plan_page(
    request: Request,
    kind: ChangeKind,
    values: Mapping[str, str],
    prepared: PreparedChange,
    *,
    has_changed: bool = False,
) -> Response:
    plan_id = console_of(request).plans.add(
        viewer_of(request).cookie, request.path_params["cluster"], kind.name, values, prepared
    )
    return page(
        request,
        "change_plan.html",
        section=kind.section,
        status=409 if has_changed else 200,
        kind=kind,
        plan_id=plan_id,
        prepared=prepared,
        lines=prepared.lines[:_MOST_LINES],
        notes=prepared.notes[:_MOST_LINES],
        has_changed=has_changed,
        back=target_url(collector_of(request), kind, values[kind.target]),
    )


async def _redirect(request: Request, run: ChangeRun, collector: Collector) -> Response:
    """Return to the page of what was changed; to the change's own page if it is not done yet."""
    number = collector.snapshot.number
    with suppress(TimeoutError):
        await asyncio.wait_for(run.ended.wait(), _PATIENCE_S)
    if run.result != "done":
        address = cluster_url(run.cluster, "changes/run", id=run.run_id)
        return RedirectResponse(address, status_code=303)
    console_of(request).notices.add(viewer_of(request).cookie, run.message)
    with suppress(TimeoutError, ClientError):
        await asyncio.wait_for(collector.newer_than(number), _SNAPSHOT_S)
    return RedirectResponse(target_url(collector, run.kind, run.target), status_code=303)


# --- changes that run or have ended ---


async def change_runs(request: Request) -> Response:
    """Show the changes of the cluster since the console's start."""
    collector = collector_of(request)
    runs = console_of(request).runner.of_cluster(collector.settings.name)
    return page(request, "change_runs.html", section="changes", runs=runs)


async def change_run(request: Request) -> Response:
    """Show a change: its progress, or how it ended."""
    run = _run(request)
    target = run.sides[request.path_params["cluster"]].target
    return page(
        request,
        "change_run.html",
        section="changes",
        run=run,
        target=target,
        back=target_url(collector_of(request), run.kind, target),
    )


async def change_stop(request: Request) -> Response:
    """Stop a change that runs."""
    form: dict[str, Any] = await sent_form(request, most_bytes=SMALL_BODY_BYTES)
    run = _run(request, form.get("id", ""))
    allowed = allowed_changes(request)
    if not allowed.allows(run.kind.name):
        raise HTTPException(403, refusal_text(run.kind, is_read_only=allowed.is_read_only))
    if not run.is_visible_in(visible_collectors(request)):
        raise HTTPException(403, "This needs a role in both clusters of the change.")
    run.stop(by=viewer_of(request).name or NOBODY)
    with suppress(TimeoutError):
        await asyncio.wait_for(run.ended.wait(), _PATIENCE_S)
    address = cluster_url(request.path_params["cluster"], "changes/run", id=run.run_id)
    return RedirectResponse(address, status_code=303)


def _run(request: Request, run_id: str | None = None) -> ChangeRun:
    collector = collector_of(request)
    run_id = request.query_params.get("id", "") if run_id is None else run_id
    run = console_of(request).runner.get(run_id, collector.settings.name)
    if run is None:
        raise HTTPException(404, "There is no such change since the console's start.")
    return run
