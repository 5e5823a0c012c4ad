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


def test_metric_names_are_valid_for_prometheus_and_unique() -> None:
    names = [row.name for row in rows(Metrics).values()]
    assert len(set(names)) == len(names)
    for name in names:
        assert re.fullmatch(r"(kafka|wirebroker)_[a-z_]+", name)


def test_each_metric_is_documented_and_counters_end_in_total() -> None:
    for row in rows(Metrics).values():
        assert row.doc.endswith("."), row.name
        if row.name.startswith("wirebroker_"):  # Kafka's names follow no such rule
            assert row.name.endswith("_total") is (row.kind is Kind.COUNTER)


def test_new_metric_needs_only_a_field() -> None:
    @dataclass(slots=True)
    class More(Metrics):
        new_things: int = counter(
            "wirebroker_new_things_total", "Things that were not counted before."
        )

    metrics = More()
    metrics.new_things += 1
    values_by_name = {sample.row.name: sample.value for sample in samples(metrics)}
    assert values_by_name["wirebroker_new_things_total"] == 1
    assert values_by_name.keys() > {
        "wirebroker_requests_late_total",
        "wirebroker_loop_hold_milliseconds",
    }


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
    listener_samples = [
        sample for sample in samples(server.metrics) if sample.row.label == "listener"
    ]
    assert {sample.label for sample in listener_samples} == {"PLAINTEXT"}
    return {sample.row.name.rpartition("metrics_")[2]: sample.value for sample in listener_samples}


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
        memory = next(
            sample for sample in samples(server.metrics) if "memorypool" in sample.row.name
        )
        assert memory.value == 0
