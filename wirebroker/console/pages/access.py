"""ACLs, SCRAM users and quotas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.client.configs.quotas import entity_text
from wirebroker.console.changes.kinds.quotas import entity_fields
from wirebroker.console.model import details
from wirebroker.console.pages.page import asked, collector_of, page
from wirebroker.console.view.paging import ListQuery, page_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from wirebroker.client.security.acls import AccessRule


async def acls(request: Request) -> Response:
    """Show ACLs by principal or by resource."""
    collector = collector_of(request)
    by = "resource" if request.query_params.get("by") == "resource" else "principal"
    answer = await asked(details.acls(collector))
    listed = await page_of(
        answer.value or [],
        ListQuery.of(request.query_params),
        name=lambda rule: f"{rule.principal} {rule.resource_type} {rule.resource_name}",
        columns={"principal": _by_principal, "resource": _by_resource},
        default_sort=by,
    )
    return page(request, "acls.html", section="acls", listed=listed, by=by, failure=answer.failure)


def _by_principal(rule: AccessRule) -> tuple[str, ...]:
    return (rule.principal, rule.resource_type, rule.resource_name, rule.operation)


def _by_resource(rule: AccessRule) -> tuple[str, ...]:
    return (rule.resource_type, rule.resource_name, rule.principal, rule.operation)


async def users(request: Request) -> Response:
    """Show the SCRAM users; credentials are never shown."""
    collector = collector_of(request)
    answer = await asked(details.users(collector))
    listed = await page_of(
        answer.value or [],
        ListQuery.of(request.query_params),
        name=lambda user: f"{user.name} {user.mechanism}",
        columns={
            "name": lambda user: (user.name, user.mechanism),
            "mechanism": lambda user: (user.mechanism, user.name),
        },
        default_sort="name",
    )
    return page(request, "users.html", section="users", listed=listed, failure=answer.failure)


async def quotas(request: Request) -> Response:
    """Show the quotas of users, client ids and addresses."""
    collector = collector_of(request)
    answer = await asked(details.quotas(collector))
    rows = [(entity_text(quota.entity), quota) for quota in answer.value or ()]
    listed = await page_of(
        rows,
        ListQuery.of(request.query_params),
        name=lambda row: row[0],
        columns={"entity": lambda row: row[0]},
        default_sort="entity",
    )
    keys = sorted({key for _, quota in rows for key in quota.values})
    return page(
        request,
        "quotas.html",
        section="quotas",
        listed=listed,
        keys=keys,
        failure=answer.failure,
        entity_fields=entity_fields,
    )
