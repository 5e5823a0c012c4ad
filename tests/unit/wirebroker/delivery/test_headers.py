"""The headers that the service reads."""

from __future__ import annotations

import pytest

from wirebroker.delivery.model.durations import parse_duration, parse_time
from wirebroker.delivery.model.header_table import HeaderError, read_headers
from wirebroker.delivery.model.retry_policy import parse_backoff


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        *(("250", 250), ("250ms", 250), ("5s", 5_000), ("5m", 300_000), ("2h", 7_200_000)),
        *(("1d", 86_400_000), ("PT1H30M", 5_400_000), ("P1DT12H", 129_600_000)),
        *(("PT0.5S", 500), ("P2W", 1_209_600_000), ("PT1.25S", 1_250)),
    ],
)
def test_durations(text, ms):
    assert parse_duration(text) == ms


@pytest.mark.parametrize(
    "text", ["", "-1", "5x", "P", "PT", "P1M", "P1Y", "5 m", "1" * 70, "٣", "PT1H" + "0" * 90]
)
def test_other_texts_are_no_durations(text):
    with pytest.raises(ValueError, match="not a duration"):
        parse_duration(text)


def test_times():
    assert parse_time("1800000000000") == 1_800_000_000_000
    assert parse_time("2027-01-15T08:00:00Z") == 1_800_000_000_000
    assert parse_time("2027-01-15T10:00:00.001+02:00") == 1_800_000_000_001
    assert parse_time("9999-12-31T23:59:59Z") > 253_000_000_000_000


@pytest.mark.parametrize(
    "text",
    [
        *("2027-01-16T00:00:00Z", "2027-01-16t00:00:00z", "2027-01-15T24:00:00Z"),
        *("2027-01-15 24:00z", "2027-01-15T24:00:00.000+00:00", "20270115T240000Z"),
        *("2027-01-15T22:00:00-02:00", "2027-01-16T02:00+02", "2027-W02-6T00:00Z"),
    ],
)
def test_forms_of_one_time(text):
    assert parse_time(text) == 1_800_057_600_000


_NO_TIMES = (
    *("2027-13-01Z", "2027-01-15T24:00:01Z", "2027-01-15T24:30Z", "2027-01-15T25:00Z"),
    *("9999-12-31T24:00:00Z", "2027-01-15T23:59:60Z", "2027-01-15T24:00"),
)


@pytest.mark.parametrize("text", ["", "soon", "2027-01-15T08:00:00", "1" * 100, *_NO_TIMES])
def test_other_texts_are_no_times(text):
    with pytest.raises(ValueError, match=r"not a time|no time zone"):
        parse_time(text)


def test_backoff_lists_pauses_and_repeats_the_last():
    backoff = parse_backoff("1s,10s, 1m")
    assert [backoff.pause_ms(attempt, b"") for attempt in (1, 2, 3, 4)] == [
        *(1_000, 10_000, 60_000, 60_000)
    ]


def test_exponential_backoff_doubles_up_to_its_cap():
    backoff = parse_backoff("exponential(1s,5s)")
    assert [backoff.pause_ms(attempt, b"") for attempt in (1, 2, 3, 4, 99)] == [
        *(1_000, 2_000, 4_000, 5_000, 5_000)
    ]


def test_jitter_spreads_pauses_in_both_directions():
    backoff = parse_backoff("exponential(10s, 10s, 0.2)")
    pauses = {backoff.pause_ms(1, b"%d" % number) for number in range(200)}
    assert min(pauses) < 8_500
    assert max(pauses) > 11_500
    assert all(8_000 <= pause <= 12_000 for pause in pauses)


@pytest.mark.parametrize(
    "text", ["", "1s,", "exponential(0,1s)", "exponential(5s,1s)", "exponential(1s)", "1s," * 101]
)
def test_other_texts_are_no_backoff(text):
    with pytest.raises(ValueError, match=r"pause|duration|retry-backoff"):
        parse_backoff(text)


def test_an_invalid_exponential_backoff_is_shown_as_a_whole():
    with pytest.raises(ValueError, match=r"'exponential\(1s,5s,2\)' is not a retry-backoff"):
        parse_backoff("exponential(1s,5s,2)")


def test_the_last_value_of_a_repeated_header_counts():
    assert read_headers([("deliver-to", b"a"), ("deliver-to", b"b")]) == {"deliver-to": "b"}


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("deliver-to", b"a b", "not a topic name"),
        ("deliver-to", None, "has no value"),
        ("deliver-to", b"\xff", "not UTF-8"),
        ("deliver-id", b"", "1 to 256 bytes"),
        ("deliver-partition", b"-1", "not a number"),
        ("deliver-afer", b"5m", "there is no header deliver-afer"),
        ("retry-attempts", b"1e3", "not a number"),
    ],
)
def test_a_bad_header_is_named_with_its_reason(name, value, reason):
    with pytest.raises(HeaderError, match=reason) as error:
        read_headers([(name, value)])
    assert name in str(error.value)
