"""Lines of files: each exactly once, in bounded memory."""

from __future__ import annotations

import bz2
import gzip
import io
import itertools
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirebroker.pipelines.ingest import file_lines
from wirebroker.pipelines.ingest.file_lines import DamagedFileError, TextLine, lines_of, open_file

if TYPE_CHECKING:
    from pathlib import Path

TEXTS = st.lists(st.sampled_from([b"a", b"bc", b"\n", b"\r", b"\r\n", b"\xef\xbb\xbf"])).map(
    b"".join
)


@given(TEXTS, st.lists(st.integers(1, 40), unique=True))
def test_pieces_of_a_file_contain_each_line_once(text: bytes, cuts: list[int]):
    boundaries = [0, *sorted(cut for cut in cuts if cut < len(text)), None]
    contents = [
        line.content
        for start, end in itertools.pairwise(boundaries)
        for line in lines_of(io.BytesIO(text), start or 0, end)
    ]
    expected = text.splitlines(keepends=True)
    if expected:
        expected[0] = expected[0].removeprefix(b"\xef\xbb\xbf")
    assert [content for content in contents if content] == [
        content for content in expected if content
    ]


@given(TEXTS, st.integers(1, 5))
def test_lines_do_not_depend_on_the_chunk_size(text: bytes, size: int):
    before = file_lines._CHUNK_BYTES
    file_lines._CHUNK_BYTES = size  # type: ignore[misc]
    try:
        contents = [line.content for line in lines_of(io.BytesIO(text))]
    finally:
        file_lines._CHUNK_BYTES = before  # type: ignore[misc]
    assert contents == [line.content for line in lines_of(io.BytesIO(text))]


def test_too_long_line_is_truncated_and_the_next_is_read(monkeypatch):
    monkeypatch.setattr(file_lines, "MOST_LINE_BYTES", 100)
    monkeypatch.setattr(file_lines, "_CHUNK_BYTES", 64)
    text = b"a\n" + b"x" * 1_000 + b"\r\nb\n" + b"y" * 500
    cut = [TextLine(b"x" * 100, is_cut=True), TextLine(b"y" * 100, is_cut=True)]
    assert list(lines_of(io.BytesIO(text))) == [TextLine(b"a\n"), cut[0], TextLine(b"b\n"), cut[1]]
    assert list(lines_of(io.BytesIO(text), 2, 3)) == [cut[0]]
    assert list(lines_of(io.BytesIO(text), 500, 1_100)) == [TextLine(b"b\n"), cut[1]]


@pytest.mark.parametrize(("ending", "compress"), [("gz", gzip.compress), ("bz2", bz2.compress)])
def test_compressed_file_is_read_up_to_its_damage(tmp_path: Path, ending, compress):
    text = b"".join(b"%d\n" % number for number in range(1_000_000))
    path = tmp_path / f"x.{ending}"
    path.write_bytes(compress(text))
    with open_file(path) as file:
        assert b"".join(line.content for line in lines_of(file)) == text
    path.write_bytes(path.read_bytes()[:-100])
    contents: list[bytes] = []
    with pytest.raises(DamagedFileError), open_file(path) as file:
        contents.extend(line.content for line in lines_of(file))
    assert text.startswith(b"".join(contents))
    assert len(contents) > 10_000
    path.write_bytes(b"not compressed")
    with pytest.raises(DamagedFileError), open_file(path) as file:
        list(lines_of(file))
    with pytest.raises(FileNotFoundError):
        open_file(tmp_path / "gone.gz")
