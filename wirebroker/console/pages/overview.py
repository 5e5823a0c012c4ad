"""All clusters in a list, and the overview of one: health, rates, lag, problems."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from starlette.responses import HTMLResponse, RedirectResponse, Response

from wirebroker.console.model.snapshot import ClusterStatus, ProblemLevel
from wirebroker.console.pages.page import (
    collector_of,
    console_of,
    page,
    viewer_of,
    visible_collectors,
)
from wirebroker.console.view.formats import compact, rate, size_rate
from wirebroker.console.view.links import cluster_url
from wirebroker.console.view.plots import PlotLine, line_plot
from wirebroker.console.view.problem_links import problem_links

if TYPE_CHECKING:
    from starlette.requests import Request

    from wirebroker.console.model.snapshot import ClusterSnapshot

_MOST_ROWS: Final = 6


async def clusters(request: Request) -> Response:
    """Show all clusters; with a single one, its overview."""
    console = console_of(request)
    visible = visible_collectors(request)
    if len(visible) == 1:
        return RedirectResponse(cluster_url(next(iter(visible))), status_code=307)
    snapshots: list[ClusterSnapshot] = []
    for collector in visible.values():
        collector.touch()
        snapshots.append(collector.snapshot)
    rows = [(snapshot, health(snapshot)) for snapshot in snapshots]
    return HTMLResponse(
        console.templates.render(
            "clusters.html", rows=rows, now_ms=console.clock.now_ms(), viewer=viewer_of(request)
        )
    )


async def overview(request: Request) -> Response:
    """Show a cluster's health, rates, lag, and problems with their causes."""
    snapshot = collector_of(request).snapshot
    return page(
        request,
        "overview.html",
        section="overview",
        health=health(snapshot),
        problems=[(problem, problem_links(snapshot, problem)) for problem in snapshot.problems],
        busiest=_largest(
            (topic for topic in snapshot.topics.values() if not topic.is_internal),
            "records_per_s",
        ),
        slowest=_largest(snapshot.groups.values(), "lag"),
        **_plots(snapshot),
    )


def health(snapshot: ClusterSnapshot) -> tuple[str, str]:
    """Return a class for colors (good, warning, bad, unknown) and the health in a sentence."""
    if snapshot.status is ClusterStatus.CONNECTING:
        return "unknown", "Connecting to the cluster."
    if snapshot.status is ClusterStatus.FAILED:
        return "bad", "The cluster does not respond."
    errors = sum(problem.level is ProblemLevel.ERROR for problem in snapshot.problems)
    warnings = sum(problem.level is ProblemLevel.WARNING for problem in snapshot.problems)
    if errors:
        return "bad", _counted_problems(errors, "error", warnings)
    if warnings:
        return "warning", _counted_problems(warnings, "warning", 0)
    if snapshot.problems or snapshot.hidden:
        return "unknown", "No problems found, but not everything could be checked."
    return "good", "Healthy: every partition has a leader and all its replicas in sync."


def _counted_problems(count: int, noun: str, warnings: int) -> str:
    text = f"{count} {noun}{'s' if count > 1 else ''}"
    if warnings:
        text += f" and {warnings} warning{'s' if warnings > 1 else ''}"
    return f"{text}."


def _largest(rows: Any, column: str) -> list[Any]:
    """Return the rows with the greatest values above zero."""
    found = [row for row in rows if (getattr(row, column) or 0) > 0]
    found.sort(key=lambda row: (-getattr(row, column), row.name))
    return found[:_MOST_ROWS]


def _plots(snapshot: ClusterSnapshot) -> dict[str, Any]:
    points = {
        metric: snapshot.history.points("cluster", snapshot.name, metric)
        for metric in ("records_per_s", "bytes_per_s", "lag")
    }
    return {
        "points": points,
        "rate_plot": line_plot(
            [PlotLine("records", points["records_per_s"])],
            title="Records written per second",
            text_of=rate,
        ),
        "bytes_plot": line_plot(
            [PlotLine("bytes", points["bytes_per_s"], "b")],
            title="Bytes written per second",
            text_of=size_rate,
            is_binary=True,
        ),
        "lag_plot": line_plot(
            [PlotLine("lag", points["lag"], "c")],
            title="Lag of all groups in records",
            text_of=compact,
        ),
    }
