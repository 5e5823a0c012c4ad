"""The series of clients: names, labels, sums and bounds."""

from __future__ import annotations

import operator

from wirebroker.base.clock import finish
from wirebroker.base.metric_field import Kind
from wirebroker.client_metrics.otlp import Attributes, Form, Point
from wirebroker.client_metrics.series import MOST_LABELS, MOST_OF_ONE_CLIENT, ClientSeries

A, B = b"a" * 16, b"b" * 16
OWN = {"client_id": "c"}


def gauge(name: str, value: float, *attributes: tuple[str, str]) -> Point:
    return Point(name, attributes, Form.GAUGE, value)


def total(name: str, value: float, form: Form = Form.DELTA) -> Point:
    return Point(name, (), form, value)


def record(series: ClientSeries, client: bytes, *points: Point) -> None:
    finish(series.record(client, OWN, points))


def values(series: ClientSeries) -> dict[str, float]:
    return {key.name: value for key, value in series.series()}


def labels_of(*attributes: tuple[str, str]) -> Attributes:
    series = ClientSeries(10)
    record(series, A, gauge("m", 1, *attributes))
    ((key, _),) = series.series()
    return key.labels


def test_names_are_those_of_prometheus_with_a_prefix() -> None:
    series = ClientSeries(10)
    record(
        series,
        A,
        gauge("org.apache.kafka.producer.record.queue.time-avg", 1.5),
        total("org.apache.kafka.producer.record.send.total", 2),
        total("other", 3),
    )
    assert values(series) == {
        "wirebroker_client_producer_record_queue_time_avg": 1.5,
        "wirebroker_client_producer_record_send_total": 2,
        "wirebroker_client_other_total": 3,
    }
    assert {key.kind for key, _ in series.series()} == {Kind.GAUGE, Kind.COUNTER}


def test_additions_are_summed_and_current_values_replaced() -> None:
    series = ClientSeries(10)
    record(series, A, total("sent", 2), total("since", 5, Form.TOTAL), gauge("g", 1), gauge("h", 1))
    record(series, A, total("sent", 3), total("since", 7, Form.TOTAL), gauge("g", 4))
    assert values(series) == {
        "wirebroker_client_sent_total": 5,
        "wirebroker_client_since_total": 7,
        "wirebroker_client_g": 4,
    }
    assert len(series) == 3


def test_a_clients_own_labels_cannot_be_replaced() -> None:
    assert labels_of(("client_id", "other"), ("topic", "t")) == (("client_id", "c"), ("topic", "t"))


def test_names_of_labels_are_valid_and_values_short() -> None:
    labels = dict(labels_of(("node.id", "1"), ("2nd", "x"), ("__name__", "y"), ("long", "v" * 999)))
    assert labels.keys() == {"client_id", "node_id", "_2nd", "name__", "long"}
    assert len(labels["long"]) == 200


def test_one_client_has_a_limited_number_of_series() -> None:
    series = ClientSeries(10 * MOST_OF_ONE_CLIENT)
    record(series, A, *(gauge(f"m{number}", 1) for number in range(MOST_OF_ONE_CLIENT + 5)))
    assert len(series) == MOST_OF_ONE_CLIENT
    assert series.dropped == 5


def test_all_clients_have_a_limited_number_of_series() -> None:
    series = ClientSeries(3)
    record(series, A, gauge("a", 1), gauge("b", 1))
    record(series, B, gauge("a", 1), gauge("b", 1))
    assert len(series) == 3
    assert series.dropped == 1
    record(series, A, gauge("a", 2), gauge("b", 2))  # its own series make room for themselves
    assert len(series) == 3
    series.remove(A)
    assert len(series) == 1
    record(series, B, gauge("a", 1), gauge("b", 1))
    assert len(series) == 2


def test_a_push_that_is_stored_in_slices_leaves_other_clients_their_room() -> None:
    series = ClientSeries(200)
    steps = series.record(A, OWN, [gauge(f"m{number}", 1) for number in range(200)])
    next(steps)
    record(series, B, *(gauge(f"m{number}", 1) for number in range(150)))
    finish(steps)
    assert len(series) == 200
    assert sum(1 for _ in series.series()) == 200
    assert series.dropped == 150


def test_the_points_of_a_push_share_their_labels() -> None:
    series = ClientSeries(MOST_OF_ONE_CLIENT)
    # Two pairs that are equal and not the same object.
    pairs = [("topic".upper(), "t" * number) for number in (5, 5)]
    record(series, A, *(gauge(f"m{n}", 1, pair) for n, pair in enumerate(pairs)))
    (first, _), (second, _) = series.series()
    assert first.labels == second.labels == (("TOPIC", "ttttt"), ("client_id", "c"))
    assert all(map(operator.is_, first.labels, second.labels))


def test_pushes_with_many_labels_are_stored_in_short_steps() -> None:
    series = ClientSeries(MOST_OF_ONE_CLIENT)
    points = [
        gauge(f"m{number}", 1, *((f"k{n}-{number}", "v") for n in range(MOST_LABELS)))
        for number in range(MOST_OF_ONE_CLIENT)
    ]
    steps = sum(1 for _ in series.record(A, OWN, points))
    assert len(series) == MOST_OF_ONE_CLIENT
    # At most 600 labels each.
    assert steps >= MOST_OF_ONE_CLIENT * MOST_LABELS / 600
