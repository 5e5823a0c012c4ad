"""Transactions and reassignments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.console.model import details
from wirebroker.console.pages.page import Answer, asked, collector_of, page
from wirebroker.console.view.paging import ListQuery, page_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from wirebroker.client.replicas.moves import Throttles
    from wirebroker.client.transactions.producer_states import PartitionProducer
    from wirebroker.console.model.collector import Collector


# The longest name of a topic.
_MOST_CHARACTERS: Final = 249
_MOST_DIGITS: Final = 6
# Kafka's default of transaction.max.timeout.ms.
_DEFAULT_MINUTES: Final = 15
_MINUTE_MS: Final = 60_000


class HangingSearch(NamedTuple):
    """A search for transactions that no coordinator ends; without a topic, none.

    `minutes` is as it was entered.
    """

    topic: str
    minutes: str
    rows: list[PartitionProducer]
    failure: str | None


async def transactions(request: Request) -> Response:
    """Show transactional producers; open and hanging transactions come first."""
    collector = collector_of(request)
    answer = await asked(details.transactions(collector))
    listed = await page_of(
        answer.value or [],
        ListQuery.of(request.query_params),
        name=lambda row: row.transactional_id,
        columns={
            "id": lambda row: row.transactional_id,
            "state": lambda row: row.state,
            "started": lambda row: row.started_ms,
            "hanging": lambda row: (row.is_hanging, row.started_ms is not None),
        },
        default_sort="-hanging",
    )
    return page(
        request,
        "transactions.html",
        section="transactions",
        listed=listed,
        failure=answer.failure,
        hanging_count=sum(row.is_hanging for row in answer.value or ()),
        hanging=await _hanging(request, collector),
    )


async def _hanging(request: Request, collector: Collector) -> HangingSearch:
    """Search the topic of the parameter `topic`, if there is one."""
    topic = request.query_params.get("topic", "").strip()[:_MOST_CHARACTERS]
    text = request.query_params.get("minutes", "").strip() or str(_DEFAULT_MINUTES)
    if not topic:
        return HangingSearch(topic, text, [], None)
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        fault = f"the minutes must be a number of at most {_MOST_DIGITS} digits, not {text[:40]!r}"
        return HangingSearch(topic, text, [], fault)
    answer = await asked(details.hanging(collector, topic, int(text) * _MINUTE_MS))
    return HangingSearch(topic, text, answer.value or [], answer.failure)


async def reassignments(request: Request) -> Response:
    """Show the replicas that are being moved."""
    collector = collector_of(request)
    answer = await asked(details.reassignments(collector))
    listed = await page_of(
        answer.value or [],
        ListQuery.of(request.query_params),
        name=lambda row: f"{row.topic}-{row.partition:010d}",
        columns={"partition": lambda row: (row.topic, row.partition)},
        default_sort="partition",
    )
    throttles: Answer[Throttles] = Answer(None, None)
    if answer.failure is None:
        throttles = await asked(details.throttles(collector))
    return page(
        request,
        "reassignments.html",
        section="reassignments",
        listed=listed,
        failure=answer.failure or throttles.failure,
        throttles=[] if throttles.value is None else sorted(throttles.value.rates.items()),
    )
