"""Metrics in OpenTelemetry's protobuf form (OTLP), as clients push them (KIP-714).

Only what a page of metrics shows is read: names, attributes, and one number a data point; of
histograms and summaries their counts and sums. A protobuf library would cost more to install and
import than these messages need.

Source: opentelemetry-proto's metrics.proto, common.proto and resource.proto; protobuf's encoding.
"""

from __future__ import annotations

from enum import Enum
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.codecs.errors import MalformedFrameError
from wirebroker.codecs.primitives import read_uvarint

if TYPE_CHECKING:
    from collections.abc import Iterator

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_DOUBLE: Final = Struct("<d")
_SFIXED64: Final = Struct("<q")
_FIXED64_UINT: Final = Struct("<Q")
_MAX_VARINT: Final = (1 << 64) - 1
_INT64: Final = 1 << 63

# Fields by message.
_RESOURCE_METRICS: Final = 1  # of MetricsData
_RESOURCE, _SCOPE_METRICS = 1, 2  # of ResourceMetrics
_RESOURCE_ATTRIBUTES: Final = 1  # of Resource
_METRICS: Final = 2  # of ScopeMetrics
_NAME: Final = 1  # of Metric, and the kinds of data:
_GAUGE, _SUM, _HISTOGRAM, _EXPONENTIAL, _SUMMARY = 5, 7, 9, 10, 11
_POINTS, _TEMPORALITY, _IS_MONOTONIC = 1, 2, 3  # of each kind of data
_AS_DOUBLE, _AS_INT = 4, 6  # of NumberDataPoint
_COUNT, _TOTAL = 4, 5  # of the data points of histograms and summaries
_KEY, _VALUE = 1, 2  # of KeyValue
_TEXT, _FLAG, _INTEGER, _DECIMAL = 1, 2, 3, 4  # of AnyValue

# The number of the attributes' field in each kind's data points.
_ATTRIBUTES_OF: Final = {_GAUGE: 7, _SUM: 7, _HISTOGRAM: 9, _EXPONENTIAL: 1, _SUMMARY: 7}
_DELTA: Final = 1
# Letters of a name or a value that are read; the page of metrics shows fewer.
_LONGEST_NAME: Final = 400

Attributes = tuple[tuple[str, str], ...]


class Form(Enum):
    """How the number of a data point is to be read."""

    GAUGE = "a current value"
    TOTAL = "a sum since the client's start"
    DELTA = "an addition since its last push"


class Point(NamedTuple):
    """One number of a metric."""

    name: str
    attributes: Attributes
    form: Form
    value: float


class _Budget:
    """Limits the number of fields, since empty messages cost time and no bytes."""

    __slots__ = ("left",)

    def __init__(self, fields: int) -> None:
        self.left = fields


def read_points(data: bytes, *, most_fields: int, most_attributes: int) -> Iterator[Point]:
    """Read the data points of a MetricsData message, those of resources with their attributes.

    Args:
        data: The message.
        most_fields: Limit of the fields.
        most_attributes: Limit of the attributes of a data point and its resource.

    Raises:
        MalformedFrameError: The data is invalid, or has more fields or attributes.
    """
    budget = _Budget(most_fields)
    reader = _Reader(budget, most_attributes)
    for number, resource_metrics in _fields(memoryview(data), budget):
        if number == _RESOURCE_METRICS:
            yield from reader.resource_metrics(_message(resource_metrics))


class _Reader:
    __slots__ = ("_budget", "_most_attributes")

    def __init__(self, budget: _Budget, most_attributes: int) -> None:
        self._budget = budget
        self._most_attributes = most_attributes

    def resource_metrics(self, view: memoryview) -> Iterator[Point]:
        """Read a resource's metrics; its attributes may come after them."""
        attributes: Attributes = ()
        scopes: list[memoryview] = []
        for number, value in _fields(view, self._budget):
            if number == _RESOURCE:
                # A resource may come in parts.
                attributes = self._attributes(_message(value), _RESOURCE_ATTRIBUTES, attributes)
            elif number == _SCOPE_METRICS:
                scopes.append(_message(value))
        for scope in scopes:
            for number, value in _fields(scope, self._budget):
                if number == _METRICS:
                    yield from self._metric(_message(value), attributes)

    def _metric(self, view: memoryview, attributes: Attributes) -> Iterator[Point]:
        name = ""
        data: list[tuple[int, memoryview]] = []
        for number, value in _fields(view, self._budget):
            if number == _NAME:
                name = _text(value)[:_LONGEST_NAME]
            elif number in _ATTRIBUTES_OF:
                data.append((number, _message(value)))
        for kind, body in data:
            points: list[memoryview] = []
            is_delta = is_monotonic = False
            for number, value in _fields(body, self._budget):
                if number == _POINTS:
                    points.append(_message(value))
                elif number == _TEMPORALITY:
                    is_delta = value == _DELTA
                elif number == _IS_MONOTONIC:
                    is_monotonic = bool(value)
            if kind in {_GAUGE, _SUM}:
                is_total = kind == _SUM and (is_monotonic or is_delta)
                form = (Form.DELTA if is_delta else Form.TOTAL) if is_total else Form.GAUGE
                yield from self._numbers(name, kind, points, attributes, form)
            else:
                form = Form.DELTA if is_delta else Form.TOTAL
                yield from self._distributions(name, kind, points, attributes, form)

    def _numbers(
        self, name: str, kind: int, points: list[memoryview], attributes: Attributes, form: Form
    ) -> Iterator[Point]:
        for point in points:
            number: float | None = None
            for field, value in _fields(point, self._budget):
                if field == _AS_DOUBLE:
                    number = _fixed(value, _DOUBLE)
                elif field == _AS_INT:
                    number = _fixed(value, _SFIXED64)
            if number is not None:
                every = self._attributes(point, _ATTRIBUTES_OF[kind], attributes)
                yield Point(name, every, form, number)

    def _distributions(
        self, name: str, kind: int, points: list[memoryview], attributes: Attributes, form: Form
    ) -> Iterator[Point]:
        for point in points:
            every = self._attributes(point, _ATTRIBUTES_OF[kind], attributes)
            for field, value in _fields(point, self._budget):
                if field == _COUNT:
                    count = _fixed(value, _FIXED64_UINT)
                    yield Point(f"{name}.count", every, form, count)
                elif field == _TOTAL:
                    yield Point(f"{name}.sum", every, form, _fixed(value, _DOUBLE))

    def _attributes(self, view: memoryview, field: int, outer: Attributes) -> Attributes:
        """Return attributes with those of the resource, which all its points share."""
        pairs: list[tuple[str, str]] = []
        for number, value in _fields(view, self._budget):
            if number == field:
                if len(outer) + len(pairs) == self._most_attributes:
                    raise MalformedFrameError("too many attributes of one data point")
                pairs.append(self._attribute(_message(value)))
        return (*outer, *pairs) if pairs else outer

    def _attribute(self, view: memoryview) -> tuple[str, str]:
        key = text = ""
        for number, value in _fields(view, self._budget):
            if number == _KEY:
                key = _text(value)[:_LONGEST_NAME]
            elif number == _VALUE:
                for kind, inner in _fields(_message(value), self._budget):
                    text = _any_text(kind, inner)
        return key, text


def _any_text(kind: int, value: int | memoryview) -> str:
    """Return an attribute's value as text; empty for arrays, mappings and bytes."""
    if kind == _TEXT:
        return _text(value)[:_LONGEST_NAME]
    if kind == _FLAG:
        return "true" if value else "false"
    if kind == _INTEGER and isinstance(value, int):
        return str(value - 2 * _INT64 if value >= _INT64 else value)
    return str(_fixed(value, _DOUBLE)) if kind == _DECIMAL else ""


def _fields(view: memoryview, budget: _Budget) -> Iterator[tuple[int, int | memoryview]]:
    """Read a message's fields: numbers of varints, and the bytes of others."""
    position = 0
    while position < len(view):
        budget.left -= 1
        if budget.left < 0:
            raise MalformedFrameError("too many fields")
        tag, position = read_uvarint(view, position)
        kind = tag & 7
        if not tag >> 3:
            raise MalformedFrameError("a field without a number")
        if kind == _VARINT:
            number, position = _read_varint64(view, position)
            yield tag >> 3, number
            continue
        if kind == _BYTES:
            length, position = read_uvarint(view, position)
        elif kind in {_FIXED64, _FIXED32}:
            length = 8 if kind == _FIXED64 else 4
        else:
            raise MalformedFrameError(f"wire type {kind}")
        if length > len(view) - position:
            raise MalformedFrameError("a field ends beyond its message")
        yield tag >> 3, view[position : position + length]
        position += length


def _read_varint64(view: memoryview, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(view):
        byte = view[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > _MAX_VARINT:
                break
            return value, position
        shift += 7
        if shift > 63:
            break
    raise MalformedFrameError("an invalid varint")


def _message(value: int | memoryview) -> memoryview:
    if isinstance(value, int):
        raise MalformedFrameError("a number instead of a message")
    return value


def _text(value: int | memoryview) -> str:
    try:
        return str(_message(value), "utf-8")
    except UnicodeDecodeError:
        raise MalformedFrameError("a text that is not UTF-8") from None


def _fixed(value: int | memoryview, struct: Struct) -> float:
    view = _message(value)
    if len(view) != struct.size:
        raise MalformedFrameError("a number of the wrong size")
    number: float = struct.unpack(view)[0]
    return number
