"""Pending records and dead letters, changed from the console."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest

from tests.support.brokers.collectors import collecting, snapshot_when
from tests.support.console.changes import made, prepared
from wirebroker.console.changes.change import ChangeError
from wirebroker.console.delivery.delivery_state import (
    DEFAULT_GROUP,
    dead_letters_of_cluster,
    has_delivery,
    services_of,
)
from wirebroker.console.delivery.pending_reading import is_readable, pending_records
from wirebroker.testing import Broker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from wirebroker.console.model.collector import Collector

PENDING = f"__{DEFAULT_GROUP}"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        running.create_topics(["orders", "orders.dead-letters", "later", "sooner"])
        running.delivery.start()
        yield running


@contextlib.asynccontextmanager
async def with_pending(broker: Broker, **headers: str) -> AsyncIterator[Collector]:
    """Let a record wait for an hour, and return a collector that knows of it."""
    names = {"deliver-to": "orders", "deliver-after": "1h"}
    names |= {name.replace("_", "-"): text for name, text in headers.items()}
    broker.produce("deliver", "a book", key="customer-7", headers=names)
    assert broker.delivery.pending_count() > 0
    async with collecting(broker.bootstrap_servers) as c:
        await snapshot_when(
            c, lambda s: PENDING in s.topics and (s.topics[PENDING].record_count or 0) > 0
        )
        yield c


async def test_services_and_pending_records_are_shown(broker):
    async with with_pending(broker, deliver_id="shown") as c:
        assert has_delivery(c.snapshot)
        (service,) = services_of(c.snapshot)
        assert (service.group, service.pending.name) == (DEFAULT_GROUP, PENDING)
        assert [row.topic.name for row in dead_letters_of_cluster(c.snapshot)] != []
        assert is_readable(service.pending)
        found = await pending_records(c, service.pending)
        row = next(row for row in found.rows if row.delivery_id == "shown")
        assert (row.target, row.key, row.value_bytes) == ("orders", "customer-7", 6)


@pytest.mark.parametrize(
    ("kind", "effect", "delivered"),
    [
        ("cancel-delivery", "it is not delivered", 0),
        ("deliver-now", "it is delivered at once", 1),
    ],
)
async def test_a_pending_record_is_canceled_or_delivered_at_once(broker, kind, effect, delivered):
    name = f"id-of-{kind}"
    async with with_pending(broker, deliver_id=name) as c:
        before = len(broker.records("orders"))
        plan = await prepared(c, kind, delivery_id=name)
        assert plan.lines[0] == f"record {name}: {effect}"
        assert plan.lines[2] == "key customer-7, 6 bytes"
        pending = broker.delivery.pending_count()
        assert (await plan.apply()).startswith(f"{name}: sent to the service")
        broker.delivery.settle()
        assert broker.delivery.pending_count() == pending - 1
        assert len(broker.records("orders")) == before + delivered
        with pytest.raises(ChangeError, match="no such record is pending"):
            await prepared(c, kind, delivery_id=name)


async def test_a_record_without_an_id_is_named_by_its_entry(broker):
    async with with_pending(broker, deliver_to="later") as c:
        (service,) = services_of(c.snapshot)
        found = await pending_records(c, service.pending)
        (entry,) = [row.entry for row in found.rows if row.target == "later"]
        assert "sent to the service" in await made(c, "deliver-now", entry=entry)
        broker.delivery.settle()
        assert [record.value for record in broker.records("later")] == [b"a book"]


async def test_dead_letters_are_sent_again_once(broker):
    headers = {"__dlq.errors.topic": "sooner", "__dlq.errors.message": "too early"}
    for value in ("one", "two"):
        broker.produce("orders.dead-letters", value, headers=headers)
    async with collecting(broker.bootstrap_servers) as c:
        topic = "orders.dead-letters"
        await snapshot_when(c, lambda s: topic in s.topics and s.topics[topic].record_count == 2)
        plan = await prepared(c, "redrive", topic=topic, message="early", rate=100)
        assert plan.summary == "Redrive dead letters of orders.dead-letters"
        assert plan.notes[0] == "orders.dead-letters has 2 records"
        assert await plan.apply() == "sooner: 2 records sent"
        assert plan.progress is not None
        assert plan.progress() == "2 records"
        assert sorted(record.value for record in broker.records("sooner")) == [b"one", b"two"]
        assert await made(c, "redrive", topic=topic) == "there was nothing to redrive"


@pytest.mark.parametrize(
    ("kind", "values", "field", "message"),
    [
        ("cancel-delivery", {}, "delivery_id", "by its id or by its entry"),
        ("deliver-now", {"delivery_id": "a", "entry": "b"}, "delivery_id", "by its id or by its"),
        ("deliver-now", {"group": "no", "delivery_id": "a"}, "group", "no delivery service no"),
        ("deliver-now", {"delivery_id": "nobody's"}, None, "no such record is pending"),
        ("redrive", {"topic": "none"}, "topic", "there is no topic none"),
        ("redrive", {"topic": "orders", "count": "0"}, "count", "from 1"),
        ("redrive", {"topic": "orders", "rate": "x"}, "rate", "is not a whole number"),
    ],
)
async def test_wrong_values_are_refused(broker, kind, values, field, message):
    async with with_pending(broker) as c:
        with pytest.raises(ChangeError, match=message) as refused:
            await prepared(c, kind, **values)
        assert refused.value.field == field
