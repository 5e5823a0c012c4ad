from __future__ import annotations

import pytest

from wirebroker.console.view import formats
from wirebroker.console.view.formats import UNKNOWN


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, UNKNOWN),
        (0, "0"),
        (0.44, "0.44"),
        (9.5, "9.5"),
        (327.4, "327"),
        (999.6, "1 k"),
        (1234, "1.23 k"),
        (45_600_000, "45.6 M"),
    ],
)
def test_compact_numbers_have_three_digits(value, text):
    assert formats.compact(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 B"), (999, "999 B"), (1024, "1 KiB"), (1536, "1.5 KiB"), (5 << 30, "5 GiB")],
)
def test_sizes_have_binary_units(value, text):
    assert formats.size(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, UNKNOWN),
        (0, "0 s"),
        (0.25, "250 ms"),
        (8.07, "8.07 s"),
        (59.6, "60 s"),
        (61, "1 min 1 s"),
        (7200, "2 h"),
        (90_000, "1 d 1 h"),
    ],
)
def test_durations_have_at_most_two_units(seconds, text):
    assert formats.duration(seconds) == text


def test_changes_have_a_sign():
    assert formats.signed_rate(1500) == "+1.5 k/s"
    assert formats.signed_rate(-2) == "\u22122/s"


def test_times_are_in_utc_with_milliseconds():
    assert formats.iso_time(1_795_000_000_123) == "2026-11-18T11:06:40.123Z"
    assert formats.plain_time(1_795_000_000_123) == "2026-11-18 11:06:40.123 UTC"


@pytest.mark.parametrize("time_ms", [-1, 1 << 62])
def test_times_beyond_the_calendar_are_numbers(time_ms):
    assert formats.plain_time(time_ms) == str(time_ms)


@pytest.mark.parametrize(
    ("text", "time_ms"),
    [
        ("1795000000123", 1_795_000_000_123),
        ("2026-11-18T11:06:40", 1_795_000_000_000),
        ("2026-11-18T12:06:40+01:00", 1_795_000_000_000),
    ],
)
def test_entered_times_are_utc_unless_they_have_an_offset(text, time_ms):
    assert formats.parsed_time(text) == time_ms


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01", "\uff11\uff12"])
def test_other_texts_are_no_times(text):
    with pytest.raises(ValueError, match="is not a time: write"):
        formats.parsed_time(text)


def test_shares_are_bounded():
    assert formats.percent(150, 100) == 100
    assert formats.percent(1, 0) is None


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("it waits", "It waits."),
        ("Why?", "Why?"),
        ("", ""),
        ("a.", "A."),
        (
            "under-replicated, so it waits: add a broker",
            "Under-replicated, so it waits: add a broker.",
        ),
        ("retention.ms: records are deleted", "retention.ms: records are deleted."),
        ("orders: 2 records sent", "orders: 2 records sent."),
        ("payments-writer-1 is fenced", "payments-writer-1 is fenced."),
    ],
)
def test_clauses_become_sentences(text, shown):
    assert formats.sentence(text) == shown


@pytest.mark.parametrize(
    ("part", "limit", "text"),
    [
        (1.0, 2.0, "50 %"),
        (3.0, 2.0, "150 %"),
        (1.0, 5e-324, "9,999 %"),
        (1.0, 0.0, None),
        (1.0, float("nan"), None),
        (1.0, float("inf"), None),
    ],
)
def test_shares_of_a_limit_may_exceed_it(part, limit, text):
    assert formats.share_of(part, limit) == text
