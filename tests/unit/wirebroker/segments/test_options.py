"""Options of the data source over log directories, and their errors."""

from __future__ import annotations

import pytest

from wirebroker.codecs.special_offsets import EARLIEST, LATEST
from wirebroker.segments.errors import OptionError
from wirebroker.segments.options import Limit, parse_columns, parse_options
from wirebroker.segments.row_schema import check_types, column_names, schema_text

GIVEN = {"path": "/data", "subscribe": "orders"}


def test_batch_reads_everything_and_stream_starts_at_the_end():
    batch = parse_options(GIVEN, is_stream=False)
    assert (batch.start, batch.end) == (Limit(EARLIEST), Limit(LATEST))
    stream = parse_options(GIVEN, is_stream=True)
    assert (stream.start, stream.end) == (Limit(LATEST), Limit(LATEST))
    assert (batch.fail_on_data_loss, batch.is_committed) == (True, False)


def test_option_names_are_case_insensitive_and_client_settings_ignored():
    raw_options = {"PATH": "/a, /b", "Subscribe": "x,y", "kafka.bootstrap.servers": "h:1"}
    options = parse_options(
        raw_options | {"KAFKA.isolation.level": "READ_COMMITTED"}, is_stream=False
    )
    assert options.directories == ("/a", "/b")
    assert options.topics == frozenset(("x", "y"))
    assert options.is_committed


def test_timestamp_overrides_timestamps_which_override_offsets():
    offsets = {"startingOffsets": "earliest"}
    times = {"startingOffsetsByTimestamp": '{"orders": {"0": 5}}'} | offsets
    assert parse_options(GIVEN | offsets, is_stream=False).start == Limit(EARLIEST)
    start = parse_options(GIVEN | times, is_stream=False).start
    assert start == Limit(each={("orders", 0): 5}, is_time=True)
    start = parse_options(GIVEN | times | {"startingTimestamp": "7"}, is_stream=False).start
    assert start == Limit(7, is_time=True)


def test_pattern_and_assignment_select_partitions():
    pattern = parse_options({"path": "/d", "subscribePattern": "or.*"}, is_stream=False)
    assert pattern.wants("orders", 3)
    assert not pattern.wants("a-or", 3)
    assigned = parse_options({"path": "/d", "assign": '{"orders": [0, 2]}'}, is_stream=False)
    assert [assigned.wants("orders", number) for number in range(3)] == [True, False, True]


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"path": " "}, "option path is missing: name a log directory"),
        ({"subscribePattern": "x"}, "give one of the options subscribe, subscribePattern"),
        (
            {"maxTriggerDelay": "soon"},
            "option maxTriggerDelay must be like 30s, 15m or 200ms, not",
        ),
        ({"maxTriggerDelay": "5 weeks"}, "option maxTriggerDelay must be like"),
        (
            {"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "8"},
            "minOffsetsPerTrigger, 9, is greater than maxOffsetsPerTrigger, 8",
        ),
        ({"startingOffset": "1"}, "option startingOffset is unknown; there are path"),
        ({"startingOffsets": "latest"}, "a batch cannot start at latest"),
        ({"endingOffsets": "earliest"}, "a batch cannot end at earliest"),
        ({"startingOffsets": '{"orders": {"0": -1}}'}, "a batch cannot start at latest"),
        (
            {"startingOffsets": '{"orders": {"0": -3}}'},
            "option startingOffsets: -3 is not an offset",
        ),
        ({"startingOffsets": '{"orders": 1}'}, "option startingOffsets must be like {"),
        ({"endingOffsets": "[1"}, "option endingOffsets must be like {"),
        ({"startingTimestamp": "noon"}, "option startingTimestamp: 'noon' is not a whole number"),
        ({"minPartitions": "0"}, "option minPartitions must be at least 1"),
        ({"failOnDataLoss": "no"}, "option failOnDataLoss must be true or false, not no"),
        (
            {"kafka.isolation.level": "x"},
            "option kafka.isolation.level must be read_uncommitted or",
        ),
    ],
)
def test_invalid_options_are_refused(more, sentence):
    with pytest.raises(OptionError) as caught:
        parse_options(GIVEN | more, is_stream=False)
    assert str(caught.value).startswith(sentence)


def test_malformed_pattern_or_assignment_is_refused():
    with pytest.raises(OptionError, match="is not a pattern"):
        parse_options({"path": "/d", "subscribePattern": "("}, is_stream=False)
    with pytest.raises(OptionError, match="option assign must be like"):
        parse_options({"path": "/d", "assign": '{"orders": 0}'}, is_stream=False)


def test_stream_refuses_an_end():
    with pytest.raises(OptionError, match="endingOffsets is for batches"):
        parse_options(GIVEN | {"endingOffsets": "latest"}, is_stream=True)


def test_columns_are_the_connectors_plus_own_or_the_named_ones():
    assert parse_columns(GIVEN) == (None, False)
    names = column_names(None, includes_headers=True)
    connectors = "key value topic partition offset timestamp timestampType headers"
    assert names[:8] == tuple(connectors.split())
    assert "headers" not in column_names(None, includes_headers=False)
    columns, _ = parse_columns(GIVEN | {"columns": "offset, key"})
    assert schema_text(column_names(columns, includes_headers=False)) == "offset bigint, key binary"


@pytest.mark.parametrize(
    ("names", "sentence"), [(("x",), "'x' is unknown"), (("key", "key"), "key is listed twice")]
)
def test_unknown_or_repeated_columns_are_refused(names, sentence):
    with pytest.raises(OptionError, match=sentence):
        column_names(names, includes_headers=False)


def test_user_schema_must_have_the_sources_types():
    check_types({"key": "binary", "offset": "bigint"})
    with pytest.raises(OptionError, match="offset must be bigint, not int"):
        check_types({"offset": "int"})
    with pytest.raises(OptionError, match="'k' is unknown"):
        check_types({"k": "binary"})
