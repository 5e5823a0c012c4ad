"""ACLs, SCRAM users and quotas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.base.threads import Work, in_thread
from wirebroker.client.configs.quotas import entity_text
from wirebroker.console.changes.kinds.quotas import entity_fields
from wirebroker.console.client_metrics.quota_usage import uses_of
from wirebroker.console.model import details
from wirebroker.console.model.http_settings import METRICS_URLS, has_metrics_urls
from wirebroker.console.pages.page import asked, collector_of, page
from wirebroker.console.view.paging import ListQuery, page_of
from wirebroker.coordinator.quotas.quota_entity import entity_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from wirebroker.client.configs.quotas import EntityQuotas
    from wirebroker.client.security.acls import AccessRule
    from wirebroker.console.client_metrics.broker_clients import BrokerClients
    from wirebroker.console.client_metrics.quota_usage import QuotaUse
    from wirebroker.console.model.snapshot import ClusterSnapshot
    from wirebroker.coordinator.quotas.quota_entity import QuotaEntity


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
    """Show the quotas of users, client ids and addresses, and how much of them is used."""
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
    has_metrics = has_metrics_urls(collector.settings.properties)
    clients = collector.snapshot.clients
    return page(
        request,
        "quotas.html",
        section="quotas",
        listed=listed,
        keys=sorted({key for _, quota in rows for key in quota.values}),
        failure=answer.failure,
        entity_fields=entity_fields,
        uses=await _uses(answer.value or (), clients) if has_metrics else {},
        entity_of=entity_of,
        has_metrics=has_metrics,
        is_read=_is_read(collector.snapshot),
        setting=METRICS_URLS,
        scrape_failures=[(key, row.failure) for key, row in clients.items() if row.failure],
    )


def _is_read(snapshot: ClusterSnapshot) -> bool:
    """Return whether the quotas in use of all brokers are known."""
    rows = [snapshot.clients.get(broker_id) for broker_id in snapshot.brokers]
    return bool(rows) and all(
        row is not None and row.read_ms and not row.is_cut and row.failure is None for row in rows
    )


async def _uses(
    quotas: Iterable[EntityQuotas], clients: Mapping[int, BrokerClients]
) -> dict[tuple[QuotaEntity, str], QuotaUse]:
    """Return the use of quotas, computed in a thread: there may be 10,000 quotas and clients."""
    keys = {entity_of(quota.entity.items()): quota.values.keys() for quota in quotas}
    return await in_thread(Work.LISTS, uses_of, keys, clients)
