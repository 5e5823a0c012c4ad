"""The metrics page, parsed by Prometheus' own parser."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.http.scrape_pages import read_page, value
from wirebroker.base.clock import finish
from wirebroker.base.metric_field import Histogram, Kind
from wirebroker.metrics import (
    broker_rows,
    client_rows,
    group_rows,
    partition_rows,
    process_facts,
    raft_rows,
)
from wirebroker.metrics.page import Page, label_texts
from wirebroker.metrics.rows import DIALECTS, ShownRow

_DOUBLE: ShownRow[int] = ShownRow(
    'Twice as much, "\\" and\nall.',
    lambda number: None if number < 0 else 2 * number,
    Kind.COUNTER,
    exporter="a_total",
    jmx="b_total",
    kminion="k_total",
)

TABLES: list[tuple[ShownRow[Any], ...]] = [
    partition_rows.PARTITION_ROWS,
    partition_rows.TOPIC_ROWS,
    partition_rows.TRAFFIC_ROWS,
    partition_rows.ALL_TRAFFIC_ROWS,
    group_rows.KIND_ROWS,
    *group_rows.STATE_ROWS.values(),
    group_rows.KIND_LAG_ROWS,
    group_rows.GROUP_ROWS,
    group_rows.GROUP_TOPIC_ROWS,
    group_rows.GROUP_PARTITION_ROWS,
    broker_rows.BROKER_ROWS,
    broker_rows.CLUSTER_ROWS,
    broker_rows.CONTROLLER_ROWS,
    broker_rows.BUILD_ROWS,
    broker_rows.BROKER_INFO_ROWS,
    process_facts.PROCESS_ROWS,
    client_rows.CLIENT_ROWS,
    raft_rows.STATE_ROWS,
    raft_rows.RAFT_ROWS,
]


def page_of(*dialects: str, **values: int) -> str:
    page = Page(dialects)
    finish(
        page.add([_DOUBLE], [(label_texts((("topic", name),)), values[name]) for name in values])
    )
    return page.text().decode()


def test_each_dialect_has_its_own_metric_names():
    samples = read_page(page_of("exporter", "confluent", t=4))
    assert samples == {("a_total", (("topic", "t"),)): 8, ("b_total", (("topic", "t"),)): 8}
    assert read_page(page_of("kminion", t=4)) == {("k_total", (("topic_name", "t"),)): 8}


def test_name_shared_by_two_dialects_is_written_once():
    assert len(read_page(page_of("strimzi", "confluent", t=4))) == 1


def test_samples_without_a_value_and_empty_families_are_omitted():
    assert len(read_page(page_of("exporter", t=4, u=-1))) == 1
    assert page_of("exporter", u=-1) == ""


@pytest.mark.parametrize("name", ['a"b', "a\\b", "a\nb", "a\\nb", 'ä{}"=,'])
def test_any_label_value_round_trips(name):
    page = Page(["exporter"])
    finish(page.add([_DOUBLE], [(label_texts((("g", name),)), 1)]))
    assert value(read_page(page.text().decode()), "a_total", g=name) == 2


def test_many_samples_are_written_in_slices():
    page = Page(["exporter"])
    samples = [(label_texts((("n", str(number)),)), number) for number in range(1_200)]
    assert sum(1 for _ in page.add([_DOUBLE], samples)) == 3
    assert len(read_page(page.text().decode())) == 1_200


def test_histogram_buckets_are_cumulative():
    histogram = Histogram([1, 10])
    for number in (0.5, 2, 11):
        histogram.record(number)
    page = Page([])
    page.add_histogram("h", "Numbers.", histogram)
    samples = read_page(page.text().decode())
    assert [value(samples, "h_bucket", le=bound) for bound in ("1", "10", "+Inf")] == [1, 2, 3]
    assert (value(samples, "h_sum"), value(samples, "h_count")) == (13.5, 3)


def test_metric_name_belongs_to_one_row():
    names = [name for table in TABLES for row in table for name, _ in row.names(DIALECTS)]
    assert len(set(names)) == len(names)
    assert all(row.doc.endswith(".") for table in TABLES for row in table)
