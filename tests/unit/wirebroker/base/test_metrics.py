"""The table of metrics: its rows and values, and new metrics."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.support.brokers.servers import client_of, running
from tests.support.tools.waiting import until
from wirebroker.base.metric_field import Histogram, Kind, counter, rows, samples
from wirebroker.base.metrics import Metrics
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from pathlib import Path

    from wirebroker.broker.server import Server


def test_names_are_prometheus_and_stand_once() -> None:
    names = [row.name for row in rows(Metrics).values()]
    assert len(set(names)) == len(names)
    for name in names:
        assert re.fullmatch(r"(kafka|wirebroker)_[a-z_]+", name)


def test_each_row_says_what_it_counts() -> None:
    for row in rows(Metrics).values():
        assert row.doc.endswith("."), row.name
        if row.name.startswith("wirebroker_"):  # Kafka's names follow no such rule
            assert row.name.endswith("_total") is (row.kind is Kind.COUNTER)


def test_a_new_metric_is_a_field() -> None:
    @dataclass(slots=True)
    class More(Metrics):
        new_things: int = counter("wirebroker_new_things_total", "What was not counted before.")

    metrics = More()
    metrics.new_things += 1
    found = {sample.row.name: sample.value for sample in samples(metrics)}
    assert found["wirebroker_new_things_total"] == 1
    assert found.keys() > {"wirebroker_requests_late_total", "wirebroker_loop_hold_milliseconds"}


def test_a_histogram_counts_values_by_range() -> None:
    histogram = Histogram([1, 10])
    for value in (0.5, 1, 2, 10, 11):
        histogram.record(value)
    assert histogram.counts == [2, 2, 1]
    assert (histogram.count, histogram.total, histogram.largest) == (5, 24.5, 11)
    assert histogram.count_over(1) == 3
    histogram.reset()
    assert (histogram.count, histogram.largest) == (0, 0)


def of_listener(server: Server) -> dict[str, object]:
    """Return the values of the only listener by the suffixes of their names."""
    found = [each for each in samples(server.metrics) if each.row.label == "listener"]
    assert {each.label for each in found} == {"PLAINTEXT"}
    return {each.row.name.rpartition("metrics_")[2]: each.value for each in found}


async def test_a_broker_counts_its_connections(tmp_path: Path) -> None:
    settings = {"max.connections.per.ip": "2"}
    async with running(tmp_path, settings=settings) as server, client_of(server) as client:
        await client.ask(ApiKey.METADATA, 12, {"topics": []})
        async with client_of(server) as second:
            await second.ask(ApiKey.METADATA, 12, {"topics": []})
            async with client_of(server) as refused:
                assert await refused.is_closed()
        await until(lambda: server.metrics.connections_closed["PLAINTEXT"])
        assert of_listener(server) == {
            "connection_count": 1,
            "connection_creation_total": 2,
            "connection_close_total": 1,
            "wirebroker_connections_refused_total": 1,
        }
        memory = next(each for each in samples(server.metrics) if "memorypool" in each.row.name)
        assert memory.value == 0
