"""Filters of searches; a batch is never rejected if one of its records matches."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirebroker.codecs.records.batch import batch_payload, build_batch, read_batch_header
from wirebroker.codecs.records.record import Record
from wirebroker.console.records.queries import SearchQuery
from wirebroker.console.records.record_filter import filter_of


def record(key=None, value=None, headers=()):
    return Record(0, 0, key, value, headers)


def matches(query: SearchQuery, **fields) -> bool:
    query.check()
    record_filter = filter_of(query)
    assert record_filter is not None
    made = record(**fields)
    batch = bytes(build_batch([made]))
    payload = batch_payload(batch, read_batch_header(batch))
    is_match = record_filter.matches(made)
    assert record_filter.may_match(payload) or not is_match
    return is_match


def test_a_search_without_filters_matches_all():
    assert filter_of(SearchQuery("t")) is None


@pytest.mark.parametrize(
    ("where", "found_in"),
    [("any", "kvh"), ("key", "k"), ("value", "v"), ("header", "h")],
)
def test_text_is_searched_in_its_place(where, found_in):
    query = SearchQuery("t", text="needle", where=where)
    found = ""
    found += "k" if matches(query, key=b"a needle") else ""
    found += "v" if matches(query, value=b"needles") else ""
    found += "h" if matches(query, headers=[("x", b"needle")]) else ""
    assert found == found_in
    assert matches(query, headers=[("needle", None)]) == ("h" in found_in)


def test_text_without_regard_to_case():
    query = SearchQuery("t", text="Straße Ä", is_case_sensitive=False)
    assert matches(query, value="STRASSE ä".encode())
    assert not matches(query._replace(is_case_sensitive=True), value="STRASSE ä".encode())
    assert matches(SearchQuery("t", text="ERROR", is_case_sensitive=False), value=b"an Error")


def test_headers_by_name_and_value():
    query = SearchQuery("t", header_name="trace", header_value="42")
    assert matches(query, headers=[("a", b"1"), ("trace", b"t42")])
    assert not matches(query, headers=[("trace", b"7"), ("other", b"42")])
    assert not matches(query, value=b"trace 42")
    assert not matches(query, headers=[("trace", None)])
    assert matches(query._replace(header_value=""), headers=[("trace", None)])


def test_all_filters_must_hold():
    query = SearchQuery("t", text="red", jsonpath="$.id == 7")
    assert matches(query, value=b'{"id": 7, "color": "red"}')
    assert not matches(query, value=b'{"id": 7}')
    assert not matches(query, value=b'{"id": 8, "color": "red"}')


@pytest.mark.parametrize(
    "value",
    [
        b'{"id": 7}',
        b'{"id": 7.0}',
        b'{"id": 70e-1}',
        b'{"id": 0.7E1}',
        b'{"\\u0069d": 7}',
        b' {"id":7} ',
        '\ufeff{"id": 7}'.encode("utf-16-le"),
    ],
)
def test_a_number_is_found_in_each_notation(value):
    is_utf16 = value.startswith(b"\xff")
    assert matches(SearchQuery("t", jsonpath="$.id == 7"), value=value) is not is_utf16


@pytest.mark.parametrize("value", [b"", b"{", b"id 7", b"[" * 100_000, b"\xff\xfe\x00", None])
def test_values_that_are_not_json_do_not_match(value):
    assert not matches(SearchQuery("t", jsonpath="$"), value=value)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abä"), inner),
    max_leaves=6,
)


@given(_JSON, st.booleans(), st.sampled_from(["$.a", "$..b", "$['ä']", "$.a.b", "$[0].a"]))
def test_a_batch_with_a_match_is_not_rejected(document, is_ascii, path):
    value = json.dumps(document, ensure_ascii=is_ascii).encode("utf-8", "surrogatepass")
    for literal in (document, 7, "x"):
        if isinstance(literal, str | int | float) and not isinstance(literal, bool):
            text = json.dumps(literal)
            if len(text) < 50 and "e" not in text:
                matches(SearchQuery("t", jsonpath=f"{path} == {text}"), value=value)
    matches(SearchQuery("t", jsonpath=path), value=value)


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (SearchQuery("t", start="end"), "starts at"),
        (SearchQuery("t", where="all"), "any, key, value or header"),
        (SearchQuery("t", limit=0), "1 to 1000"),
        (SearchQuery("t", limit=1001), "1 to 1000"),
        (SearchQuery("t", jsonpath="x"), "JSONPath"),
    ],
)
def test_an_invalid_search_is_refused(query, reason):
    with pytest.raises(ValueError, match=reason):
        query.check()
