"""The worked example in codecs/README.md, byte by byte."""

import re
from pathlib import Path

from wirebroker.codecs.frames import parse_request_header, response_header
from wirebroker.codecs.hot.produce import ProduceTopic, parse_produce
from wirebroker.codecs.hot.produce_response import PartitionResult, encode_produce
from wirebroker.codecs.records.batch import build_batch

README = Path(__file__).parents[3] / "codecs" / "README.md"
TOPIC_ID = bytes(range(16))
SHORT = {
    "00 01 02 … 0f": TOPIC_ID.hex(" "),
    "ff … ff (14)": "ff " * 14,
    "ff … ff |": "ff " * 8,
    "00 … 00": "00 " * 8,
}


def blocks() -> list[tuple[bytes, list[int]]]:
    """Return the example's two blocks as bytes, and the byte counts next to them."""
    example = README.read_text(encoding="utf-8").partition("## A worked example")[2]
    code_blocks = re.findall(r"(?:^    .*\n)+", example, re.MULTILINE)
    result: list[tuple[bytes, list[int]]] = []
    for block in code_blocks:
        data = bytearray()
        counts: list[int] = []
        for line in block.splitlines():
            code, comment = line[4:58], line[58:]
            for short, full in SHORT.items():
                code = code.replace(short, full)
            data += bytes.fromhex(code.replace("|", " "))
            counts += [int(count) for count in re.findall(r"^(?:header, )?(\d+)\b", comment)]
        result.append((bytes(data), counts))
    return result


def test_the_readme_s_request_is_what_is_parsed() -> None:
    (frame, counts), _ = blocks()
    assert len(frame) == sum(counts) == 120
    header = parse_request_header(frame)
    assert header == (0, 13, 1, "me", 13)
    request = parse_produce(memoryview(frame), header[4], 13)
    assert (request.transactional_id, request.acks, request.timeout_ms) == (None, -1, 30_000)
    (topic,) = request.topics
    assert (topic.name, topic.topic_id) == ("", TOPIC_ID)
    ((index, records),) = topic.partitions
    assert index == 0
    assert records is not None
    assert bytes(records) == build_batch([(b"k", b"hello", ())], timestamp_ms=1_700_000_000_000)
    assert len(records) == 74


def test_the_readme_s_response_is_what_is_encoded() -> None:
    _, (data, counts) = blocks()
    assert len(data) == sum(counts) == 62
    result = PartitionResult(0, 0, base_offset=5, log_start_offset=0)
    body = encode_produce(13, [(ProduceTopic("", TOPIC_ID, []), [result])])
    assert data == response_header(0, 13, 1) + body
