"""The reader of OpenTelemetry's metrics."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.records.otlp_messages import (
    CUMULATIVE,
    DELTA,
    GAUGE,
    HISTOGRAM,
    SUM,
    attributes,
    counter,
    double,
    field,
    gauge,
    metric,
    metrics_data,
    number_point,
    varint,
)
from wirebroker.client_metrics.otlp import Form, Point, read_points
from wirebroker.client_metrics.series import MOST_LABELS
from wirebroker.codecs.errors import MalformedFrameError

RESOURCE = {"group_id": "g"}
OF_RESOURCE = (("group_id", "g"),)


def points(data: bytes, *, fields: int = 1_000, attribute_count: int = MOST_LABELS) -> list[Point]:
    return list(read_points(data, most_fields=fields, most_attributes=attribute_count))


def test_gauges_and_sums_have_the_attributes_of_their_resource_first() -> None:
    data = metrics_data([gauge("a", 1.5, {"topic": "t"}), counter("b", 2)], RESOURCE)
    assert points(data) == [
        Point("a", (*OF_RESOURCE, ("topic", "t")), Form.GAUGE, 1.5),
        Point("b", OF_RESOURCE, Form.DELTA, 2.0),
    ]


def test_a_sum_that_may_fall_is_a_gauge_and_one_since_the_start_a_total() -> None:
    falling = metric("f", SUM, [number_point(1)], temporality=CUMULATIVE)
    total = metric("t", SUM, [number_point(1)], temporality=CUMULATIVE, monotonic=True)
    assert [point.form for point in points(metrics_data([falling, total]))] == [
        Form.GAUGE,
        Form.TOTAL,
    ]


def test_integers_and_other_values_of_attributes_are_read() -> None:
    values = [
        field(1, b"text"),
        field(2, 1),
        field(3, (1 << 64) - 5),
        double(4, 0.5),
        field(5, b""),
    ]
    own = b"".join(
        field(7, field(1, b"k%d" % number) + field(2, value)) for number, value in enumerate(values)
    )
    point = varint(6 << 3 | 1) + struct.pack("<q", -7) + own
    (read,) = points(metrics_data([metric("a", 5, [point])]))
    assert read.value == -7
    assert read.attributes == (
        ("k0", "text"),
        ("k1", "true"),
        ("k2", "-5"),
        ("k3", "0.5"),
        ("k4", ""),
    )


def test_a_histogram_is_its_count_and_its_sum() -> None:
    point = varint(4 << 3 | 1) + struct.pack("<Q", 3) + double(5, 4.5) + attributes(9, {"k": "v"})
    data = metrics_data([metric("h", HISTOGRAM, [point], temporality=DELTA)])
    assert points(data) == [
        Point("h.count", (("k", "v"),), Form.DELTA, 3),
        Point("h.sum", (("k", "v"),), Form.DELTA, 4.5),
    ]


def test_unknown_fields_and_points_without_a_number_are_skipped() -> None:
    unknown = field(99, b"xyz") + field(98, 1 << 40) + varint(97 << 3 | 5) + b"1234"
    empty = metric("e", 5, [attributes(7, {"k": "v"})])
    assert points(unknown + metrics_data([unknown + gauge("a", 1), empty])) == [
        Point("a", (), Form.GAUGE, 1.0)
    ]


@pytest.mark.parametrize(
    "data",
    [
        b"\x0a",  # no length
        b"\x0a\x05ab",  # ends early
        b"\x0b",  # a group
        b"\x08\x01",  # a number instead of a message
        b"\x00\x01",  # field 0
        b"\x10" + b"\xff" * 11,  # a varint without an end
        metrics_data([field(1, b"\xff")]),  # not UTF-8
        metrics_data([metric("a", 5, [field(4, b"1234")])]),  # a short number
    ],
)
def test_malformed_data_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedFrameError):
        points(data)


def test_the_number_of_fields_is_limited() -> None:
    data = metrics_data([metric("a", 5, [b""] * 1_000)])
    assert points(data, fields=2_010) == []
    with pytest.raises(MalformedFrameError, match="too many fields"):
        points(data, fields=900)


def resources(count: int, points_of_each: int) -> bytes:
    """Return data points of a resource that comes in parts, of an attribute each."""
    gauges = b"".join(
        field(2, metric("a", GAUGE, [number_point(1)])) for _ in range(points_of_each)
    )
    parts = b"".join(field(1, attributes(1, {f"k{number}": "v"})) for number in range(count))
    return field(1, field(2, gauges) + parts)


def test_the_attributes_of_a_point_and_its_resource_are_limited() -> None:
    assert len(points(resources(MOST_LABELS, 1))[0].attributes) == MOST_LABELS
    for data in (
        resources(MOST_LABELS + 1, 1),
        metrics_data([gauge("a", 1, {"own": "v"})], {f"k{n}": "v" for n in range(MOST_LABELS)}),
        metrics_data([gauge("a", 1, {f"k{n}": "v" for n in range(MOST_LABELS + 1)})]),
    ):
        with pytest.raises(MalformedFrameError, match="too many attributes"):
            points(data)


def test_points_share_the_attributes_of_their_resource() -> None:
    first, *others = points(resources(MOST_LABELS, 100))
    assert len(others) == 99
    assert all(point.attributes is first.attributes for point in others)


def test_long_texts_are_cut() -> None:
    long = "x" * 100_000
    (point,) = points(metrics_data([gauge(long, 1, {long: long})], {f"{long}2": long}))
    assert {len(text) for pair in point.attributes for text in pair} == {400}
    assert len(point.name) == 400


def is_read_or_refused(data: bytes) -> bool:
    try:
        points(data)
    except MalformedFrameError:
        return True
    return True


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    assert is_read_or_refused(data)


@given(st.data())
def test_a_changed_byte_is_read_or_refused(drawn: st.DataObject) -> None:
    data = bytearray(metrics_data([counter("a", 1, {"k": "v"}), gauge("b", 2)], RESOURCE))
    data[drawn.draw(st.integers(0, len(data) - 1))] = drawn.draw(st.integers(0, 255))
    assert is_read_or_refused(bytes(data))
