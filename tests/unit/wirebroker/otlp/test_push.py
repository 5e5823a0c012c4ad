"""Metrics by OTLP: what a collector gets is what /metrics shows."""

from __future__ import annotations

import asyncio
import logging
from importlib import metadata
from typing import TYPE_CHECKING

import pytest
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics

from tests.support.brokers.servers import client_of, config_of, running, until
from tests.support.http.otlp_collector import OtlpCollector
from tests.support.protocol.requests import append, create_topic
from tests.support.records.batches import batch
from tests.support.tools.ports import free_port
from wirebroker.base.metric_field import Histogram, Kind
from wirebroker.broker.server import Server
from wirebroker.config import Config, ConfigError, StartError
from wirebroker.metrics.page import Page, label_texts
from wirebroker.metrics.rows import ShownRow
from wirebroker.metrics.scrape import Scrape
from wirebroker.otlp.page_reader import Family, families_of
from wirebroker.otlp.push import MetricsPush, endpoint_of
from wirebroker.otlp.sending import metrics_of, resource_of

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def collector() -> Iterator[OtlpCollector]:
    with OtlpCollector() as one:
        yield one


def settings_of(collector: OtlpCollector) -> dict[str, str]:
    return {"wirebroker.otlp.endpoint": collector.address, "wirebroker.otlp.interval.ms": "1000"}


def metrics_in(post):
    (of_resource,) = post.resource_metrics
    (scoped,) = of_resource.scope_metrics
    return {each.name: each for each in scoped.metrics}


def points_by_topic(metric):
    """Return the numbers that are told of topics."""
    return {
        each.attributes[0].value.string_value: each
        for each in metric.sum.data_points
        if [label.key for label in each.attributes] == ["topic"]
    }


async def test_a_collector_gets_totals_gauges_and_histograms_with_their_labels(tmp_path, collector):
    settings = settings_of(collector)
    async with running(tmp_path, settings=settings) as server, client_of(server) as client:
        for held_ms in (0.5, 4.0, 3000.0):
            server.metrics.loop_hold_ms.record(held_ms)
        await create_topic(client, "orders", 2)
        await append(client, "orders", batch(b"one"))
        name = "kafka_server_brokertopicmetrics_messagesin_total"

        while True:
            post = await asyncio.to_thread(collector.next)
            found = metrics_in(post)
            points = {} if name not in found else points_by_topic(found[name])
            if points.get("orders"):
                break
        assert points["orders"].as_int == 1
        assert found[name].sum.is_monotonic
        assert 0 < points["orders"].start_time_unix_nano < points["orders"].time_unix_nano
        assert found["kafka_server_replicamanager_leadercount"].gauge.data_points[0].as_int >= 2
        (held,) = found["wirebroker_loop_hold_milliseconds"].histogram.data_points
        assert held.count == sum(held.bucket_counts) == 3
        assert held.sum == 3004.5
        assert (held.bucket_counts[-1], held.HasField("max")) == (1, False)
        assert len(held.bucket_counts) == len(held.explicit_bounds) + 1
        by_request = {
            each.attributes[0].value.string_value: each
            for each in found["wirebroker_request_microseconds"].histogram.data_points
        }
        assert by_request["Produce"].count == sum(by_request["Produce"].bucket_counts) == 1
        assert by_request["CreateTopics"].sum > 0
        resource = post.resource_metrics[0].resource
        whose = {each.key: each.value.string_value for each in resource.attributes}
        assert whose["service.name"] == "wirebroker"
        assert whose["service.instance.id"] == "1"
        path, headers = collector.seen[0]
        assert (path, headers["content-type"]) == ("/v1/metrics", "application/x-protobuf")


async def test_a_collector_that_refuses_is_told_of_once_and_so_is_its_return(
    tmp_path, collector, caplog, monkeypatch
):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=shop")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "broker-of-the-shop")
    collector.status = 400
    with caplog.at_level(logging.INFO, "wirebroker.otlp"):
        async with running(tmp_path, settings=settings_of(collector)):
            for _ in range(2):
                await asyncio.to_thread(collector.next)
            collector.status = 200
            await until(lambda: "again" in caplog.text)
    said = [each for each in caplog.records if each.name == "wirebroker.otlp"]
    assert [each.levelname for each in said] == ["WARNING", "INFO"]
    assert "400" in said[0].getMessage()
    assert collector.seen[0][1]["x-tenant"] == "shop"


async def test_a_collector_that_is_away_is_said_to_be_away(tmp_path, caplog, monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "2")  # one retry
    settings = {"wirebroker.otlp.endpoint": f"http://127.0.0.1:{free_port()}"}
    async with running(tmp_path, settings=settings):
        await until(lambda: "metrics cannot be sent" in caplog.text)
    (said,) = (each for each in caplog.records if each.name == "wirebroker.otlp")
    assert "Connection refused" in said.getMessage()


async def test_clients_are_served_while_the_process_that_sends_is_killed(tmp_path, collector):
    async with running(tmp_path, settings=settings_of(collector)) as server:
        await asyncio.to_thread(collector.next)
        assert server._push is not None
        assert server._push._process is not None
        server._push._process.kill()
        async with client_of(server) as client:
            await create_topic(client, "orders")
        await asyncio.to_thread(collector.next)


def test_what_a_page_says_is_read_back():
    page = Page(["strimzi"])
    strange = (("topic", 'a"b\\c\nd}'), ("partition", "0"))
    page.add_one("wirebroker_some_total", Kind.COUNTER, "Say \\ and\nmore.", strange, 3)
    page.add_one("wirebroker_count", Kind.COUNTER, "Not so named.", (), 4)
    row: ShownRow[float] = ShownRow("Half.", lambda each: each, own="wirebroker_half")
    for _ in page.add([row], [(label_texts(()), 0.5)]):
        pass
    histogram = Histogram([1.0, 2.0])
    for each in (0.5, 1.5, 9.0):
        histogram.record(each)
    page.add_histogram("wirebroker_held", "Held.", histogram)
    first, untyped, half, held = families_of(page.text())
    assert (first.doc, first.kind) == ("Say \\ and\nmore.", "counter")
    assert first.samples == [("wirebroker_some_total", dict(strange), 3.0)]
    assert untyped.kind == "untyped"
    assert half.samples == [("wirebroker_half", {}, 0.5)]
    assert [value for _, _, value in held.samples] == [1.0, 2.0, 3.0, 11.0, 3.0]


@pytest.mark.parametrize("end", ["\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029"])
def test_a_group_may_be_named_with_any_character_that_ends_a_line_somewhere(end):
    page = Page(["strimzi"])
    labels = (("consumergroup", f"a{end}b"),)
    page.add_one("wirebroker_some", Kind.GAUGE, "Some.", labels, 3)
    (family,) = families_of(page.text())
    assert family.samples == [("wirebroker_some", dict(labels), 3.0)]


def test_an_offset_that_a_client_has_made_up_is_sent_as_near_as_may_be():
    most = float((1 << 63) - 1)
    family = Family("lag", "Lag.", "gauge", [("lag", {}, each) for each in (most, -most, 7.0)])
    found = metrics_of([family], resource=resource_of("1"), began_ns=1, now_ns=2)
    encoded = encode_metrics(found).resource_metrics[0].scope_metrics[0].metrics[0]
    assert [each.as_double or each.as_int for each in encoded.gauge.data_points] == [most, -most, 7]


async def test_a_collector_may_refuse_with_many_words(tmp_path, collector, caplog):
    collector.status, collector.reason = 400, "n" * 65_500  # the longest line of HTTP
    with caplog.at_level(logging.INFO, "wirebroker.otlp"):
        async with running(tmp_path, settings=settings_of(collector)):
            await until(lambda: "cannot be sent" in caplog.text)
            collector.status, collector.reason = 200, None
            await until(lambda: "again" in caplog.text)
    assert "400" in caplog.text
    assert len(caplog.text) < 5_000


async def test_a_fault_of_ours_costs_one_page(tmp_path, collector, caplog, monkeypatch):
    pages = iter([RuntimeError("a mistake")])
    whole = Scrape.page

    async def page(scrape: Scrape) -> bytes:
        for error in pages:
            raise error
        return await whole(scrape)

    monkeypatch.setattr(Scrape, "page", page)
    async with running(tmp_path, settings=settings_of(collector)):
        await asyncio.to_thread(collector.next)
    assert "a mistake" in caplog.text


@pytest.mark.parametrize(
    "text", ["collector:4318", "ftp://collector", "http://", "x", "http://c:99999", "http://[c"]
)
def test_what_is_no_address_is_refused(text):
    with pytest.raises(ConfigError, match="write http://HOST:4318"):
        endpoint_of(text)


def test_the_usual_path_is_put_behind_an_address():
    assert endpoint_of("http://c:4318/") == "http://c:4318/v1/metrics"
    assert endpoint_of("https://c/otlp/v1/metrics") == "https://c/otlp/v1/metrics"


def test_without_the_library_a_start_says_what_to_install(tmp_path, monkeypatch):
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    config = config_of(tmp_path, settings={"wirebroker.otlp.endpoint": "http://c:4318"})
    assert isinstance(config, Config)
    with pytest.raises(StartError, match=r"pip install 'wirebroker\[otlp\]'"):
        MetricsPush(Server(config))
