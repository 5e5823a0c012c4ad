"""Files as rows: damaged files, and CSV records over many lines."""

from __future__ import annotations

import gzip
import io
from typing import TYPE_CHECKING, Any

import fastavro
import pytest

from tests.unit.wirebroker.pipelines.test_line_rows import PLAN, WISH, reason_of
from wirebroker.pipelines.ingest.file_lines import open_file
from wirebroker.pipelines.ingest.file_pieces import FilePiece, FoundFile, pieces_of
from wirebroker.pipelines.ingest.file_rows import FileRows, local_path
from wirebroker.pipelines.job.errors import JobFileError
from wirebroker.pipelines.rows.typed_rows import parse_schema

if TYPE_CHECKING:
    from pathlib import Path

    from wirebroker.pipelines.rows.placed_rows import PlacedRow

CODECS = ("null", "deflate", "bzip2", "xz", "snappy", "lz4", "zstandard")


def rows_of(content: bytes, **changes: Any) -> list[PlacedRow]:
    return list(FileRows(WISH._replace(**changes), PLAN).of_file(io.BytesIO(content), "file"))


def container(rows: list[dict[str, Any]], codec: str = "null") -> bytes:
    fields = [{"name": "id", "type": "long"}, {"name": "who", "type": ["null", "string"]}]
    schema = {"type": "record", "name": "row", "fields": fields}
    file = io.BytesIO()
    fastavro.writer(file, schema, rows, codec=codec, sync_interval=50)
    return file.getvalue()


def test_a_container_of_avro_is_read_up_to_its_damage():
    rows = [{"id": number, "who": f"k{number}"} for number in range(100)]
    whole = container(rows)
    found = rows_of(whole, format="avro")
    assert [row.value for row in found[:2]] == [
        b'{"id":0,"who":"k0","at":null}',
        b'{"id":1,"who":"k1","at":null}',
    ]
    assert len(found) == 100
    assert not any(row.is_dead for row in found)
    *good, last = rows_of(whole[: len(whole) // 2], format="avro")
    assert good == found[: len(good)]
    assert 0 < len(good) < 100
    assert reason_of(last).startswith(f"the file cannot be read after record {len(good)}: ")
    assert last.is_damage
    (strange,) = rows_of(b"no avro", format="avro")
    assert "after record 0" in reason_of(strange)
    with pytest.raises(JobFileError, match="file: the file cannot be read after record 0"):
        rows_of(b"no avro", format="avro", stops_at_damage=True)


@pytest.mark.parametrize("codec", CODECS)
def test_a_container_of_avro_may_have_any_of_its_codecs(codec: str):
    rows = [{"id": number, "who": f"k{number}"} for number in range(100)]
    found = rows_of(container(rows, codec), format="avro")
    assert [row.is_dead for row in found] == [False] * 100


def test_a_record_of_csv_over_several_lines_is_one_row():
    schema = parse_schema({"id": "long", "who": "string", "at": "timestamp?"})
    text = b'\xef\xbb\xbfid,who,at\r\n1,"two\r\nlines",\r\n2,5" pipe,\r\n3,"a ""q""",\r\n'
    one, bad, three = rows_of(text, format="csv", columns=schema)
    assert one.value == b'{"id":1,"who":"two\\r\\nlines","at":null}'
    assert three.value == b'{"id":3,"who":"a \\"q\\"","at":null}'
    assert reason_of(bad) == "is not valid CSV: a quote inside an unquoted field, in line 4"
    assert bad.value == b'2,5" pipe,'
    raw, *_ = rows_of(text, format="csv", columns=schema, is_raw=True)
    assert raw.value == b'1,"two\r\nlines",'


@pytest.mark.parametrize("kind", ["json", "csv"])
def test_a_compressed_file_that_is_cut_off_gives_its_rows_and_one_dead_letter(kind, tmp_path: Path):
    numbers = range(100_000)
    form = b'{"id":%d}\n' if kind == "json" else b"%d,,\n"
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(b"".join(form % each for each in numbers))[:-2_000])
    with open_file(path) as file:
        found = list(FileRows(WISH._replace(format=kind), PLAN).of_file(file, "file"))
    *good, last = found
    assert len(good) > 1_000
    assert [row.is_dead for row in good] == [False] * len(good)
    place = f"{'line' if kind == 'json' else 'record'} {len(good)}"
    assert reason_of(last).startswith(f"the file cannot be read after {place}: EOFError")
    stopping = FileRows(WISH._replace(format=kind, stops_at_damage=True), PLAN)
    with open_file(path) as file, pytest.raises(JobFileError, match=f"read after {place}"):
        list(stopping.of_file(file, "f"))


def test_only_lines_that_are_not_compressed_are_read_in_pieces():
    big = 300 << 20
    files = [FoundFile("s", name, big) for name in ("a.jsonl", "b.jsonl.gz")]
    pieces = pieces_of(files, format_name="json", cores=1)
    size = 128 << 20
    assert pieces == [
        FilePiece(0, "s", "a.jsonl", 0, size),
        FilePiece(1, "s", "a.jsonl", size, 2 * size),
        FilePiece(2, "s", "a.jsonl", 2 * size, None),
        FilePiece(3, "s", "b.jsonl.gz", 0, None),
    ]
    for kind in ("csv", "avro"):
        assert [each[3:] for each in pieces_of(files, format_name=kind, cores=1)] == [(0, None)] * 2
    many = [FoundFile("s", f"{number}.csv", 1_000) for number in range(1_000)]
    assert {each.task for each in pieces_of(many, format_name="csv", cores=2)} == set(range(33))
    assert pieces_of([], format_name="csv", cores=2) == []


def test_an_address_of_this_machine_is_a_path():
    assert str(local_path("file:///in/a%20b%23c.csv")) == "/in/a b#c.csv"
    assert local_path("s3a://bucket/a.csv") is None
