"""Options of the data source over log directories, and their errors."""

from __future__ import annotations

import pytest

from wirebroker.segments.errors import OptionError
from wirebroker.segments.options import EARLIEST, LATEST, Limit, parse_columns, parse_options
from wirebroker.segments.row_schema import check_types, column_names, schema_text

GIVEN = {"path": "/data", "subscribe": "orders"}


def test_a_batch_is_all_there_is_and_a_stream_what_comes():
    batch = parse_options(GIVEN, is_stream=False)
    assert (batch.start, batch.end) == (Limit(EARLIEST), Limit(LATEST))
    stream = parse_options(GIVEN, is_stream=True)
    assert (stream.start, stream.end) == (Limit(LATEST), Limit(LATEST))
    assert (batch.fail_on_data_loss, batch.is_committed) == (True, False)


def test_names_are_compared_without_regard_to_case_and_a_clients_settings_are_passed_over():
    given = {"PATH": "/a, /b", "Subscribe": "x,y", "kafka.bootstrap.servers": "h:1"}
    options = parse_options(given | {"KAFKA.isolation.level": "READ_COMMITTED"}, is_stream=False)
    assert options.directories == ("/a", "/b")
    assert options.topics == frozenset(("x", "y"))
    assert options.is_committed


def test_a_timestamp_counts_before_timestamps_and_these_before_offsets():
    offsets = {"startingOffsets": "earliest"}
    times = {"startingOffsetsByTimestamp": '{"orders": {"0": 5}}'} | offsets
    assert parse_options(GIVEN | offsets, is_stream=False).start == Limit(EARLIEST)
    found = parse_options(GIVEN | times, is_stream=False).start
    assert found == Limit(each={("orders", 0): 5}, is_time=True)
    found = parse_options(GIVEN | times | {"startingTimestamp": "7"}, is_stream=False).start
    assert found == Limit(7, is_time=True)


def test_a_pattern_and_an_assignment_choose_partitions():
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
            "option maxTriggerDelay is to be like 30s, 15m or 200ms, not",
        ),
        ({"maxTriggerDelay": "5 weeks"}, "option maxTriggerDelay is to be like"),
        (
            {"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "8"},
            "minOffsetsPerTrigger, 9, is over maxOffsetsPerTrigger, 8",
        ),
        ({"startingOffset": "1"}, "option startingOffset is not known; there are path"),
        ({"startingOffsets": "latest"}, "a batch cannot start at latest"),
        ({"endingOffsets": "earliest"}, "a batch cannot end at earliest"),
        ({"startingOffsets": '{"orders": {"0": -1}}'}, "a batch cannot start at latest"),
        ({"startingOffsets": '{"orders": {"0": -3}}'}, "option startingOffsets: -3 is no offset"),
        ({"startingOffsets": '{"orders": 1}'}, "option startingOffsets is to be like {"),
        ({"endingOffsets": "[1"}, "option endingOffsets is to be like {"),
        ({"startingTimestamp": "noon"}, "option startingTimestamp: 'noon' is no whole number"),
        ({"minPartitions": "0"}, "option minPartitions is to be at least 1"),
        ({"failOnDataLoss": "no"}, "option failOnDataLoss is true or false, not no"),
        ({"kafka.isolation.level": "x"}, "option kafka.isolation.level is read_uncommitted or"),
    ],
)
def test_what_is_of_no_use_is_refused(more, sentence):
    with pytest.raises(OptionError) as caught:
        parse_options(GIVEN | more, is_stream=False)
    assert str(caught.value).startswith(sentence)


def test_a_damaged_pattern_or_assignment_is_refused():
    with pytest.raises(OptionError, match="is no pattern"):
        parse_options({"path": "/d", "subscribePattern": "("}, is_stream=False)
    with pytest.raises(OptionError, match="option assign is to be like"):
        parse_options({"path": "/d", "assign": '{"orders": 0}'}, is_stream=False)


def test_a_stream_has_no_end():
    with pytest.raises(OptionError, match="endingOffsets is for batches"):
        parse_options(GIVEN | {"endingOffsets": "latest"}, is_stream=True)


def test_columns_are_the_connectors_and_then_ours_or_those_that_are_named():
    assert parse_columns(GIVEN) == (None, False)
    names = column_names(None, includes_headers=True)
    connectors = "key value topic partition offset timestamp timestampType headers"
    assert names[:8] == tuple(connectors.split())
    assert "headers" not in column_names(None, includes_headers=False)
    asked, _ = parse_columns(GIVEN | {"columns": "offset, key"})
    assert schema_text(column_names(asked, includes_headers=False)) == "offset bigint, key binary"


@pytest.mark.parametrize(
    ("names", "sentence"), [(("x",), "'x' is none"), (("key", "key"), "key stands there twice")]
)
def test_columns_that_are_none_are_refused(names, sentence):
    with pytest.raises(OptionError, match=sentence):
        column_names(names, includes_headers=False)


def test_a_schema_of_the_users_has_the_sources_types():
    check_types({"key": "binary", "offset": "bigint"})
    with pytest.raises(OptionError, match="offset is bigint, not int"):
        check_types({"offset": "int"})
    with pytest.raises(OptionError, match="'k' is none"):
        check_types({"k": "binary"})
