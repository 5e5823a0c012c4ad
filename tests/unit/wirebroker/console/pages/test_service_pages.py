"""Pages of delivery services and of brokers in test mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.console import fake_cluster as fake
from tests.unit.wirebroker.console.pages.conftest import Site
from wirebroker.client.errors import ClientError
from wirebroker.console.broker_http.control_calls import ControlledClock, ControlledFault
from wirebroker.console.delivery.pending_reading import PendingRecords
from wirebroker.console.model.settings import ClusterSettings
from wirebroker.console.pages import delivery, testing
from wirebroker.delivery.operations import PendingRow

if TYPE_CHECKING:
    from collections.abc import Sequence

EVIL = "<script>alert(1)</script>\"'"
PENDING = "__wirebroker-delivery"
ROW = PendingRow("entry-1", EVIL, 1_795_000_000_000, EVIL, 2, EVIL, 20, 0)


def site_with(topics: Sequence[str], *, records: int = 100) -> Site:
    group = fake.group("wirebroker-delivery", lag=7)
    rows = [fake.topic(name, records=records) for name in topics]
    return Site(fake.snapshot(topics=rows, groups=[group]))


async def test_pending_records_have_their_actions(answers):
    answers(delivery, "pending_records", PendingRecords((ROW,), 31))
    page = await site_with([PENDING, "orders.dead-letters"]).page("/c/dev/delivery")
    assert "31 records pending; the next 1 are shown" in page
    assert "/c/dev/change/deliver-now?group=wirebroker-delivery&amp;entry=entry-1" in page
    assert "/c/dev/change/cancel-delivery?" in page
    assert "/c/dev/change/redrive?topic=orders.dead-letters" in page
    assert "<script>alert" not in page


async def test_a_large_pending_topic_is_not_read(answers):
    answers(delivery, "pending_records", AssertionError("it is not to be read"))
    page = await site_with([PENDING], records=50_000).page("/c/dev/delivery")
    assert "wirebroker delivery pending --group wirebroker-delivery" in page


async def test_a_failure_is_shown_beside_the_dead_letters(answers):
    answers(delivery, "pending_records", ClientError("no broker responds"))
    page = await site_with([PENDING, "dlq.orders"]).page("/c/dev/delivery")
    assert "No broker responds." in page
    assert "dlq.orders" in page


@pytest.mark.parametrize("path", ["delivery", "testing"])
async def test_without_its_service_a_page_is_not_there(site: Site, path):
    reply = await site.get(f"/c/dev/{path}")
    assert reply.status == 404
    assert f'/c/dev/{path}"' not in await site.page("/c/dev/")


async def test_the_clock_and_the_faults_are_shown(site: Site, answers):
    collector = site.collectors[0]
    collector.settings = ClusterSettings("dev", "b:1", {"wirebroker.test.url": "http://h:1"})
    fault = ControlledFault(
        3, "error", "PRODUCE", EVIL, None, "NOT_LEADER_OR_FOLLOWER", "before_append", 0, None, 4
    )
    answers(testing, "controlled_clock", ControlledClock(0, 3_600_000, is_stopped=True))
    answers(testing, "controlled_faults", [fault])
    page = await site.page("/c/dev/testing")
    assert "1 h ahead" in page
    assert "error NOT_LEADER_OR_FOLLOWER PRODUCE" in page
    assert "/c/dev/change/run-clock?state=running" in page
    assert "/c/dev/change/remove-faults?number=3" in page
    assert "<script>alert" not in page
    answers(testing, "controlled_clock", ClientError("it is not in test mode"))
    assert "It is not in test mode." in await site.page("/c/dev/testing")
