"""Groups of every kind: the list, and one group with its members and lag."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.exceptions import HTTPException

from wirebroker.console.model import details
from wirebroker.console.pages.page import asked, collector_of, page
from wirebroker.console.view.formats import compact
from wirebroker.console.view.paging import ListQuery, page_of
from wirebroker.console.view.plots import PlotLine, line_plot

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

KINDS: Final = ("classic", "consumer", "share", "streams")
# Of a state in an address.
_MOST_CHARACTERS: Final = 40


async def groups(request: Request) -> Response:
    """Show a page of the groups."""
    snapshot = collector_of(request).snapshot
    kind = request.query_params.get("kind", "")
    state = request.query_params.get("state", "")[:_MOST_CHARACTERS]
    rows = [
        group
        for group in snapshot.groups.values()
        if kind in {"", group.kind} and state in {"", group.state}
    ]
    listed = await page_of(
        rows,
        ListQuery.of(request.query_params),
        name=lambda group: group.name,
        columns={
            "name": lambda group: group.name,
            "kind": lambda group: group.kind,
            "state": lambda group: group.state,
            "members": lambda group: group.member_count,
            "lag": lambda group: group.lag,
            "time": lambda group: group.lag_s,
        },
        default_sort="name",
    )
    sparks = {
        group.name: snapshot.history.points("group", group.name, "lag") for group in listed.rows
    }
    found_kinds = {group.kind for group in snapshot.groups.values()}
    return page(
        request,
        "groups.html",
        section="groups",
        listed=listed,
        sparks=sparks,
        kind=kind,
        kinds=[each for each in KINDS if each in found_kinds],
        state=state,
        # The chosen one remains while no group is in it.
        states=sorted({group.state for group in snapshot.groups.values()} | {state} - {""}),
    )


async def group(request: Request) -> Response:
    """Show a group: why it is stuck, its lag, members and partitions."""
    collector = collector_of(request)
    name = request.query_params.get("name", "")
    answer = await asked(details.group(collector, name))
    found = answer.value or collector.snapshot.groups.get(name)
    if found is None:
        reason = answer.failure or f"there is no group {name[:250]!r}"
        raise HTTPException(404, f"The group cannot be shown: {reason}.")
    lines = [PlotLine("lag", collector.snapshot.history.points("group", name, "lag"), "c")]
    listed = await page_of(
        found.partitions,
        ListQuery.of(request.query_params),
        name=lambda row: f"{row.topic}-{row.partition:010d}",
        columns={
            "partition": lambda row: (row.topic, row.partition),
            "committed": lambda row: row.committed,
            "end": lambda row: row.end,
            "lag": lambda row: row.lag,
            "time": lambda row: row.lag_s,
            "member": lambda row: row.member_id,
        },
        default_sort="-lag",
    )
    return page(
        request,
        "group.html",
        section="groups",
        group=found,
        failure=answer.failure,
        listed=listed,
        lag_plot=line_plot(lines, title="Lag in records", text_of=compact),
    )
