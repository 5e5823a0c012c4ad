"""CSV by RFC 4180: output of Python's csv and of spreadsheets, and malformed records."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from wirebroker.pipelines.ingest import file_rows as csv_records
from wirebroker.pipelines.ingest.file_lines import TextLine, lines_of
from wirebroker.pipelines.ingest.file_rows import CsvRecord, CsvSplitter

CELLS = st.text(st.sampled_from('ab",;\n\r é'), max_size=6)


def split(text: bytes, delimiter: str = ",") -> list[CsvRecord]:
    return list(CsvSplitter(delimiter).records(lines_of(io.BytesIO(text))))


@given(
    st.lists(st.lists(CELLS, min_size=2, max_size=4), max_size=6),
    st.sampled_from(["\r\n", "\n"]),
    st.sampled_from([",", ";", "\t", "é"]),
    st.booleans(),
)
def test_output_of_pythons_csv_module_is_read_back(rows, end, delimiter, quotes_all):
    # Before 3.13 Python quotes a CR only if its line terminator contains one.
    assume(quotes_all or end == "\r\n" or not any("\r" in cell for row in rows for cell in row))
    file = io.StringIO(newline="")
    csv.writer(
        file,
        delimiter=delimiter,
        lineterminator=end,
        quoting=csv.QUOTE_ALL if quotes_all else csv.QUOTE_MINIMAL,
    ).writerows(rows)
    records = split(b"\xef\xbb\xbf" + file.getvalue().encode(), delimiter)
    assert not any(record.fault for record in records)
    cells = [
        next(csv.reader([record.content.decode()], delimiter=delimiter, strict=True))
        for record in records
        if record.content
    ]
    assert cells == rows


@pytest.mark.parametrize(
    ("text", "contents"),
    [
        (b'1,"a\r\nb"\r\n2,c\r\n', [b'1,"a\r\nb"', b"2,c"]),
        (b'1,"a ""q"" \n\n"\n2,""\n', [b'1,"a ""q"" \n\n"', b'2,""']),
        (b'1,a\r2,"b\rc"\r3,d', [b"1,a", b'2,"b\rc"', b"3,d"]),
        (b'"a","b",\n"c",,"d"', [b'"a","b",', b'"c",,"d"']),
    ],
)
def test_line_breaks_in_quotes_are_part_of_a_record(text: bytes, contents: list[bytes]):
    assert split(text) == [CsvRecord(content) for content in contents]


@pytest.mark.parametrize(
    ("text", "first", "fault"),
    [
        (b'5" pipe,x\n', b'5" pipe,x', "a quote inside an unquoted field, in line 1"),
        (b' "a",x\n', b' "a",x', "a quote inside an unquoted field, in line 1"),
        (b'a"b\n', b'a"b', "a quote inside an unquoted field, in line 1"),
        (b'5" pipe,"x\ny"\n', b'5" pipe,"x\ny"', "a quote inside an unquoted field, in line 1"),
        (b'"a"b,x\n', b'"a"b,x', "text after the closing quote of a field of line 1"),
        (b'"a\n" b,x\n', b'"a\n" b,x', "text after the closing quote of a field of line 1"),
    ],
)
def test_malformed_record_is_reported_and_the_next_is_read(text, first, fault):
    assert split(text + b"2,ok\n") == [CsvRecord(first, fault), CsvRecord(b"2,ok")]


def test_unclosed_quote_ends_the_file_and_names_its_line():
    *good, last = split(b'1,a\n2,"b\n3,c\n')
    assert good == [CsvRecord(b"1,a")]
    assert last == (b'2,"b\n3,c\n', "the quoted field that begins in line 2 is not closed")


def test_too_long_quoted_field_ends_the_file_and_names_its_line(monkeypatch):
    monkeypatch.setattr(csv_records, "MOST_QUOTED_BYTES", 1 << 20)
    line = b"x" * 1_000 + b"\n"
    read = 0

    def lines():
        nonlocal read
        yield TextLine(b"1,a\n")
        yield TextLine(b'"short","')
        for read in range(1, 1_000_000):  # noqa: B007
            yield TextLine(line)

    good, last = CsvSplitter(",").records(lines())
    assert good == CsvRecord(b"1,a")
    assert last.fault is not None
    assert last.fault.startswith("the quoted field that begins in line 2 is longer than 1 MiB")
    assert read < 1_100
    (record,) = split(b'"%s","a"\nnext,one\n' % (b"x" * (2 << 20)))
    assert record.fault is not None
    assert "line 1 is longer" in record.fault
