"""OpenTelemetry's messages, encoded for tests."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

GAUGE, SUM, HISTOGRAM, SUMMARY = 5, 7, 9, 11
DELTA, CUMULATIVE = 1, 2
_ATTRIBUTES: Final = {GAUGE: 7, SUM: 7, HISTOGRAM: 9, SUMMARY: 7}


def varint(value: int) -> bytes:
    data = bytearray()
    while value > 0x7F:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(data) + bytes([value])


def field(number: int, value: bytes | int) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def double(number: int, value: float) -> bytes:
    return varint(number << 3 | 1) + struct.pack("<d", value)


def attributes(number: int, pairs: Mapping[str, str]) -> bytes:
    return b"".join(
        field(number, field(1, key.encode()) + field(2, field(1, value.encode())))
        for key, value in pairs.items()
    )


def number_point(value: float, pairs: Mapping[str, str] | None = None) -> bytes:
    return double(4, value) + attributes(7, pairs or {})


def metric(
    name: str, kind: int, points: Iterable[bytes], *, temporality: int = 0, monotonic: bool = False
) -> bytes:
    data = b"".join(field(1, point) for point in points)
    data += field(2, temporality) if temporality else b""
    data += field(3, 1) if monotonic else b""
    return field(1, name.encode()) + field(kind, data)


def metrics_data(metrics: Iterable[bytes], resource: Mapping[str, str] | None = None) -> bytes:
    scope = b"".join(field(2, body) for body in metrics)
    return field(1, field(2, scope) + field(1, attributes(1, resource or {})))


def counter(name: str, value: float, pairs: Mapping[str, str] | None = None) -> bytes:
    """Return the metric of an addition since the last push, as clients send it."""
    return metric(name, SUM, [number_point(value, pairs)], temporality=DELTA, monotonic=True)


def gauge(name: str, value: float, pairs: Mapping[str, str] | None = None) -> bytes:
    return metric(name, GAUGE, [number_point(value, pairs)])
