"""Log lines about peers are limited per minute and counted beyond the limit."""

from __future__ import annotations

import io
import logging

import pytest

from wirebroker.base.log_bound import LineBound, about
from wirebroker.base.logs import BoundedHandler

ALIKE, OF_ALL = 60, 600
BEGIN_S = 1_700_000_000.0


def line(
    number: int = 0,
    *,
    host: str = "10.0.0.1",
    sentence: str = "closing %s on %s: %s",
    level: int = logging.WARNING,
    at_s: float = BEGIN_S,
) -> logging.LogRecord:
    peer = f"{host}:{number}"
    fields = {"name": "wirebroker.net", "levelno": level, "created": at_s, "msg": sentence}
    args = {"args": (peer, "SSL", f"cause {number}")}
    return logging.makeLogRecord({**fields, **args, **about(peer, "SSL")})


def told(bound: LineBound, *records: logging.LogRecord) -> list[str]:
    return [emitted.getMessage() for record in records for emitted in bound.take(record)]


def test_repeated_lines_about_a_host_are_limited_and_counted() -> None:
    bound = LineBound()
    lines = told(bound, *map(line, range(1000)))
    assert lines[ALIKE - 1] == "closing 10.0.0.1:59 on SSL: cause 59"
    assert lines[ALIKE:] == [
        "more lines like this about 10.0.0.1 on SSL are only counted: "
        "closing 10.0.0.1:60 on SSL: cause 60"
    ]
    assert told(bound, line(7, at_s=BEGIN_S + 61)) == [
        "939 lines about 10.0.0.1 on SSL were suppressed, the last: "
        "closing 10.0.0.1:999 on SSL: cause 999",
        "closing 10.0.0.1:7 on SSL: cause 7",
    ]


@pytest.mark.parametrize(
    "other",
    [
        {"host": "10.0.0.2"},
        {"host": "[fe80::1]"},
        {"sentence": "refusing %s on %s: %s"},
        {"level": logging.INFO},
    ],
)
def test_another_host_message_or_level_has_its_own_limit(other: dict) -> None:
    bound = LineBound()
    told(bound, *map(line, range(100)))
    assert told(bound, line(3, **other)) == [line(3, **other).getMessage()]


def test_lines_about_no_host_are_always_logged_and_flush_due_counts() -> None:
    bound = LineBound()
    told(bound, *map(line, range(100)))
    own = logging.makeLogRecord({"msg": "stopping", "created": BEGIN_S + 59})
    assert told(bound, own) == ["stopping"]
    own.created = BEGIN_S - 1  # a clock that was set back
    first, second = told(bound, own)
    assert first.startswith("39 lines about 10.0.0.1 on SSL were suppressed")
    assert second == "stopping"


def test_lines_about_many_hosts_are_bounded_in_number_and_memory() -> None:
    bound = LineBound()
    lines = [
        text
        for number in range(20_000)
        for text in told(bound, line(number, host=f"10.0.{number // 256}.{number % 256}"))
    ]
    assert lines[OF_ALL - 1].startswith("closing 10.0.2.87:")
    assert len(lines) == OF_ALL + 1
    assert "about many addresses" in lines[-1]
    assert [record.getMessage() for record in bound.rest()] == [
        "19399 lines about many addresses were suppressed, the last: "
        f"closing 10.0.{19_999 // 256}.{19_999 % 256}:19999 on SSL: cause 19999"
    ]
    assert list(bound.rest()) == []


def test_closing_the_handler_logs_the_suppressed_count() -> None:
    stream = io.StringIO()
    handler = BoundedHandler(stream)
    for number in range(100):
        handler.handle(line(number))
    assert len(stream.getvalue().splitlines()) == ALIKE + 1
    handler.close()
    assert "39 lines about 10.0.0.1 on SSL were suppressed" in stream.getvalue().splitlines()[-1]
