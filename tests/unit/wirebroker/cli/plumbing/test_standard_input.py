"""Lines of standard input, in chunks of any size."""

from __future__ import annotations

import pytest

from wirebroker.cli.kafka.plumbing.java_words import with_replacements
from wirebroker.cli.plumbing.standard_input import LineSplitter

TEXT = b"a\r\nb\rc\n\n\r\r\nd\r"


@pytest.mark.parametrize(
    ("as_java", "lines", "rest"),
    [
        (True, [b"a", b"b", b"c", b"", b"", b"", b"d"], b""),
        (False, [b"a\r", b"b\rc", b"", b"\r\r"], b"d\r"),
    ],
)
@pytest.mark.parametrize("size", range(1, len(TEXT) + 1))
def test_line_endings_are_found_whatever_the_chunk_size(
    size: int, lines: list[bytes], rest: bytes, *, as_java: bool
) -> None:
    splitter = LineSplitter(as_java=as_java)
    split_lines: list[bytes] = []
    for start in range(0, len(TEXT), size):
        split_lines += splitter.lines_in(TEXT[start : start + size])
    assert split_lines == lines
    assert splitter.rest == rest


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"plain", "plain"),
        (b"\xc3\xa9", "é"),
        (b"a\xffb", "a\ufffdb"),
        (b"c\xed\xa0\x80d", "c\ufffdd"),
        (b"e\xe2\x82f", "e\ufffdf"),
        (b"g\xf0\x90\x80h", "g\ufffdh"),
        (b"i\xed\xa0j", "i\ufffdj"),
        (b"k\xf8\x88\x80\x80\x80l", "k\ufffd\ufffd\ufffd\ufffd\ufffdl"),
        (b"\xe0\x80\x80", "\ufffd\ufffd\ufffd"),
        (b"\xf4\x90\x80\x80", "\ufffd\ufffd\ufffd\ufffd"),
        (b"\xc0\xaf", "\ufffd\ufffd"),
        (b"end\xe2\x82", "end\ufffd"),
    ],
)
def test_malformed_text_is_replaced_as_in_java(data: bytes, text: str) -> None:
    assert with_replacements(data).decode() == text
