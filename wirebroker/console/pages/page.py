"""What all pages share: the clusters, the cluster of a request, rendered responses, failures."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse

from wirebroker.client.errors import ClientError
from wirebroker.console.changes.making.allowed import AllowedChanges
from wirebroker.console.pages.sections import is_section_shown
from wirebroker.console.view.links import cluster_url

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from starlette.requests import Request

    from wirebroker.base.clock import Clock
    from wirebroker.console.changes.change import ConsoleRole
    from wirebroker.console.changes.making.notices import Notices
    from wirebroker.console.changes.making.pending_plans import PendingPlans
    from wirebroker.console.changes.making.runner import ChangeRunner
    from wirebroker.console.login.access import ConsoleAccess
    from wirebroker.console.login.viewer import Viewer
    from wirebroker.console.model.collector import Collector
    from wirebroker.console.model.snapshot import ClusterSnapshot
    from wirebroker.console.model.topic_info import TopicInfo
    from wirebroker.console.pages.body_budget import BodyBudget
    from wirebroker.console.view.rendering import Templates

T = TypeVar("T")

# A page does not wait longer for a cluster; the rest of the page is shown with the cause.
_PATIENCE_S: Final = 10.0
# The sections of a cluster, in the order of the navigation.
SECTIONS: Final = (
    ("", "Overview", "overview"),
    ("brokers", "Brokers", "brokers"),
    ("quorum", "Quorum", "quorum"),
    ("topics", "Topics", "topics"),
    ("groups", "Groups", "groups"),
    ("clients", "Clients", "clients"),
    ("transactions", "Transactions", "transactions"),
    ("reassignments", "Reassignments", "reassignments"),
    ("acls", "ACLs", "acls"),
    ("users", "Users", "users"),
    ("quotas", "Quotas", "quotas"),
    ("delivery", "Delivery", "delivery"),
    ("testing", "Testing", "testing"),
    ("changes", "Changes", "changes"),
)


class Console(NamedTuple):
    """The state of the application: `request.app.state.console`."""

    collectors: Mapping[str, Collector]
    templates: Templates
    clock: Clock
    access: ConsoleAccess
    runner: ChangeRunner
    plans: PendingPlans
    notices: Notices
    bodies: BodyBudget
    is_read_only: bool


class Answer(NamedTuple, Generic[T]):
    """What a cluster responded on demand, or why it did not."""

    value: T | None
    failure: str | None


def console_of(request: Request) -> Console:
    """Return the application's state."""
    console: Console = request.app.state.console
    return console


def viewer_of(request: Request) -> Viewer:
    """Return the request's user, which `web/viewer_check.py` has set."""
    viewer: Viewer = request.scope["viewer"]
    return viewer


def visible_collectors(request: Request) -> dict[str, Collector]:
    """Return the collectors of the clusters in which the request's user has a role."""
    grants = viewer_of(request).grants
    return {
        name: collector
        for name, collector in console_of(request).collectors.items()
        if grants.role_in(name) is not None
    }


def collector_of(request: Request) -> Collector:
    """Return the collector of the request's cluster, and keep it refreshing.

    Raises:
        HTTPException: 404, there is no such cluster, or the user has no role in it.
    """
    name = request.path_params["cluster"]
    visible = visible_collectors(request)
    collector = visible.get(name)
    if collector is None:
        names = ", ".join(visible) or "none"
        raise HTTPException(404, f"There is no cluster {name[:64]!r}. Clusters: {names}.")
    collector.touch()
    return collector


def role_of(request: Request) -> ConsoleRole:
    """Return the user's role in the request's cluster, which `collector_of` has checked."""
    role = viewer_of(request).grants.role_in(request.path_params["cluster"])
    assert role is not None
    return role


def allowed_changes(request: Request) -> AllowedChanges:
    """Return the changes that the user may make in the request's cluster."""
    return AllowedChanges(role_of(request), is_read_only=console_of(request).is_read_only)


def other_clusters(request: Request, change: str) -> dict[str, Collector]:
    """Return the other clusters in which the user may make a change of this kind."""
    console = console_of(request)
    found: dict[str, Collector] = {}
    for name, collector in visible_collectors(request).items():
        role = viewer_of(request).grants.role_in(name)
        assert role is not None
        allowed = AllowedChanges(role, is_read_only=console.is_read_only)
        if name != request.path_params["cluster"] and allowed.allows(change):
            found[name] = collector
    return found


def topic_of(request: Request, snapshot: ClusterSnapshot) -> TopicInfo:
    """Return the topic of the parameter `name`.

    Raises:
        HTTPException: 404, it is not in the snapshot.
    """
    name = request.query_params.get("name", "")
    topic = snapshot.topics.get(name)
    if topic is None:
        raise HTTPException(
            404,
            f"There is no topic {name[:250]!r} in cluster {snapshot.name}, or this user may not"
            " describe it.",
        )
    return topic


async def asked(work: Awaitable[T]) -> Answer[T]:
    """Await a cluster's response, for at most 10 s; a failure becomes a sentence."""
    try:
        async with asyncio.timeout(_PATIENCE_S):
            return Answer(await work, None)
    except ClientError as error:
        return Answer(None, str(error))
    except TimeoutError:
        return Answer(
            None,
            f"the cluster did not respond within {_PATIENCE_S:g} s; reload the page to try again",
        )


def page(
    request: Request, template: str, /, section: str, *, status: int = 200, **values: Any
) -> HTMLResponse:
    """Return a page of a cluster."""
    collector = collector_of(request)
    console = console_of(request)
    viewer = viewer_of(request)
    changes = allowed_changes(request)
    is_part = request.headers.get("hx-request") == "true"
    text = console.templates.render(
        template,
        cluster=collector.settings.name,
        cluster_names=list(visible_collectors(request)),
        snapshot=collector.snapshot,
        section=section,
        sections=[
            (cluster_url(collector.settings.name, path), title, key)
            for path, title, key in SECTIONS
            if is_section_shown(key, collector) and (key != "changes" or changes.allows_any)
        ],
        query=request.query_params.multi_items(),
        path=request.url.path,
        here=f"{request.url.path}?{request.url.query}",
        now_ms=console.clock.now_ms(),
        changes=changes,
        viewer=viewer,
        kafka_user=collector.kafka_user,
        # A refreshed part has no place for them.
        notices=[] if is_part else console.notices.take(viewer.cookie),
        **values,
    )
    return HTMLResponse(text, status_code=status)
