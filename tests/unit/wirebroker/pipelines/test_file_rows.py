"""Files as rows: damaged files, and CSV records over many lines."""

from __future__ import annotations

import gzip
import io
from typing import TYPE_CHECKING, Any

import fastavro
import pytest

from tests.unit.wirebroker.pipelines.test_line_rows import PLAN, WISH, reason_of
from wirebroker.pipelines.ingest.file_lines import open_file
from wirebroker.pipelines.ingest.file_rows import (
    FilePiece,
    FileRows,
    SourceFile,
    local_path,
    pieces_of,
)
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


def test_avro_container_is_read_up_to_its_damage():
    rows = [{"id": number, "who": f"k{number}"} for number in range(100)]
    data = container(rows)
    parsed = rows_of(data, format="avro")
    assert [row.value for row in parsed[:2]] == [
        b'{"id":0,"who":"k0","at":null}',
        b'{"id":1,"who":"k1","at":null}',
    ]
    assert len(parsed) == 100
    assert not any(row.is_dead for row in parsed)
    *good, last = rows_of(data[: len(data) // 2], format="avro")
    assert good == parsed[: len(good)]
    assert 0 < len(good) < 100
    assert reason_of(last).startswith(f"the file cannot be read after record {len(good)}: ")
    assert last.is_damage
    (strange,) = rows_of(b"no avro", format="avro")
    assert "after record 0" in reason_of(strange)
    with pytest.raises(JobFileError, match="file: the file cannot be read after record 0"):
        rows_of(b"no avro", format="avro", stops_at_damage=True)


@pytest.mark.parametrize("codec", CODECS)
def test_avro_container_supports_each_codec(codec: str):
    rows = [{"id": number, "who": f"k{number}"} for number in range(100)]
    parsed = rows_of(container(rows, codec), format="avro")
    assert [row.is_dead for row in parsed] == [False] * 100


def test_csv_record_over_several_lines_is_one_row():
    schema = parse_schema({"id": "long", "who": "string", "at": "timestamp?"})
    text = b'\xef\xbb\xbfid,who,at\r\n1,"two\r\nlines",\r\n2,5" pipe,\r\n3,"a ""q""",\r\n'
    first, bad, third = rows_of(text, format="csv", columns=schema)
    assert first.value == b'{"id":1,"who":"two\\r\\nlines","at":null}'
    assert third.value == b'{"id":3,"who":"a \\"q\\"","at":null}'
    assert reason_of(bad) == "is not valid CSV: a quote inside an unquoted field, in line 4"
    assert bad.value == b'2,5" pipe,'
    raw, *_ = rows_of(text, format="csv", columns=schema, is_raw=True)
    assert raw.value == b'1,"two\r\nlines",'


@pytest.mark.parametrize("kind", ["json", "csv"])
def test_truncated_compressed_file_gives_its_rows_and_one_dead_letter(kind, tmp_path: Path):
    numbers = range(20_000)
    form = b'{"id":%d}\n' if kind == "json" else b"%d,,\n"
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(b"".join(form % number for number in numbers))[:-2_000])
    with open_file(path) as file:
        parsed = list(FileRows(WISH._replace(format=kind), PLAN).of_file(file, "file"))
    *good, last = parsed
    assert len(good) > 1_000
    assert [row.is_dead for row in good] == [False] * len(good)
    position = f"{'line' if kind == 'json' else 'record'} {len(good)}"
    assert reason_of(last).startswith(f"the file cannot be read after {position}: EOFError")
    stopping = FileRows(WISH._replace(format=kind, stops_at_damage=True), PLAN)
    with open_file(path) as file, pytest.raises(JobFileError, match=f"read after {position}"):
        list(stopping.of_file(file, "f"))


def test_only_uncompressed_line_files_are_split():
    big = 300 << 20
    files = [SourceFile("s", name, big) for name in ("a.jsonl", "b.jsonl.gz")]
    pieces = pieces_of(files, format_name="json", cores=1)
    size = 128 << 20
    assert pieces == [
        FilePiece(0, "s", "a.jsonl", 0, size),
        FilePiece(1, "s", "a.jsonl", size, 2 * size),
        FilePiece(2, "s", "a.jsonl", 2 * size, None),
        FilePiece(3, "s", "b.jsonl.gz", 0, None),
    ]
    for kind in ("csv", "avro"):
        assert [piece[3:] for piece in pieces_of(files, format_name=kind, cores=1)] == [
            (0, None)
        ] * 2
    many_files = [SourceFile("s", f"{number}.csv", 1_000) for number in range(1_000)]
    assert {piece.task for piece in pieces_of(many_files, format_name="csv", cores=2)} == set(
        range(33)
    )
    assert pieces_of([], format_name="csv", cores=2) == []


def test_file_url_is_a_local_path():
    assert str(local_path("file:///in/a%20b%23c.csv")) == "/in/a b#c.csv"
    assert local_path("s3a://bucket/a.csv") is None
