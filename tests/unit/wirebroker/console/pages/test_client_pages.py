"""Pages of what brokers' metrics report: connections of clients, and the use of quotas."""

from __future__ import annotations

import pytest

from tests.support.console import fake_cluster as fake
from tests.unit.wirebroker.console.pages.conftest import Site
from wirebroker.client.configs.quotas import EntityQuotas
from wirebroker.console.client_metrics.broker_clients import (
    BrokerClients,
    ClientConnections,
    ClientMeter,
)
from wirebroker.console.model import details
from wirebroker.console.model.settings import ClusterSettings

EVIL = "<script>alert(1)</script>\"'"
JAVA = ClientConnections("apache-kafka-java", "4.4.0", "TLS", "anna", 2)
SETTINGS = {"wirebroker.metrics.urls": "1=http://a:9404,2=http://b:9404"}
QUOTAS = [
    EntityQuotas({"user": "anna"}, {"producer_byte_rate": 1048576.0}),
    EntityQuotas({"client-id": None}, {"request_percentage": 50.0}),
]


def site_with(clients: dict[int, BrokerClients], *, is_configured: bool = True) -> Site:
    site = Site(fake.snapshot()._replace(clients=clients))
    properties = SETTINGS if is_configured else {}
    site.collectors[0].settings = ClusterSettings("dev", "b:1", properties)
    return site


async def test_connections_of_all_brokers_are_added_up():
    clients = {
        1: BrokerClients((JAVA, JAVA._replace(software=EVIL, user=None)), read_ms=1),
        2: BrokerClients((JAVA._replace(connections=40),), read_ms=1),
    }
    page = await site_with(clients).page("/c/dev/clients")
    assert '<td class="number" data-label="Connections">42</td>' in page
    assert '<td data-label="Brokers">1, 2</td>' in page
    assert "apache-kafka-java" in page
    assert "4.4.0" in page
    assert "<dd>44</dd>" in page
    assert "<script>alert" not in page


async def test_the_list_can_be_filtered_and_sorted():
    rows = (JAVA, JAVA._replace(software="librdkafka", user=None, connections=7))
    site = site_with({1: BrokerClients(rows, read_ms=1)})
    assert "librdkafka" not in await site.page("/c/dev/clients?q=anna")
    for sort in ("software", "listener", "user", "-count"):
        page = await site.page(f"/c/dev/clients?sort={sort}")
        assert "librdkafka" in page


async def test_failures_and_missing_brokers_are_named():
    failed = BrokerClients((JAVA,), read_ms=fake.NOW_MS, failure="http://a:9404 does not respond")
    page = await site_with({1: failed}).page("/c/dev/clients")
    assert "http://a:9404 does not respond." in page
    assert "not read yet" in page
    empty = await site_with({1: BrokerClients(read_ms=1)}).page("/c/dev/clients")
    assert "Add Strimzi's or Confluent's rule" in empty


async def test_without_an_address_the_page_is_not_there():
    site = site_with({}, is_configured=False)
    reply = await site.get("/c/dev/clients")
    assert reply.status == 404
    assert "no wirebroker.metrics.urls in the console" in reply.text
    assert '/c/dev/clients"' not in await site.page("/c/dev/")
    assert '/c/dev/clients"' in await site_with({}).page("/c/dev/")


async def test_the_use_of_quotas_is_next_to_their_limits(answers):
    answers(details, "quotas", QUOTAS)
    meters = (
        ClientMeter("Produce", "anna", "", "", 524288.0, 0.0),
        ClientMeter("Request", "", EVIL, "", 60.0, 1500.0),
        ClientMeter("Request", "", "other", "", 1.0, 0.0),
    )
    page = await site_with({1: BrokerClients(meters=meters, read_ms=1)}).page("/c/dev/quotas")
    assert "512 KiB/s in use, 50 %" in page
    assert "60 % in use, 120 %" in page
    assert "the busiest of 2" in page
    assert "throttled, 1.5 s" in page
    assert "<script>alert" not in page


async def test_a_quota_without_use_says_so_if_all_brokers_were_read(answers):
    answers(details, "quotas", QUOTAS)
    read = dict.fromkeys(fake.snapshot().brokers, BrokerClients(read_ms=1))
    page = await site_with(read).page("/c/dev/quotas")
    assert page.count("not in use") == 2
    for incomplete in (
        {**read, 1: BrokerClients(read_ms=1, is_cut=True)},
        {**read, 1: BrokerClients(read_ms=1, failure="it does not respond")},
        {key: row for key, row in read.items() if key != 1},
    ):
        page = await site_with(incomplete).page("/c/dev/quotas")
        assert page.count("use unknown") == 2
        assert "not in use" not in page
    failed = BrokerClients(failure="it does not respond")
    page = await site_with({1: failed}).page("/c/dev/quotas")
    assert "not in use" not in page
    assert "The use of quotas on broker 1 cannot be read: It does not respond." in page


@pytest.mark.parametrize(("quotas", "count"), [(QUOTAS, 1), ([], 0)])
async def test_without_an_address_one_line_says_what_to_configure(answers, quotas, count):
    answers(details, "quotas", quotas)
    page = await site_with({}, is_configured=False).page("/c/dev/quotas")
    assert page.count("<code>wirebroker.metrics.urls</code>") == count
    assert "in use" not in page
