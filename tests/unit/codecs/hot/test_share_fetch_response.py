"""The hand-written ShareFetch response equals the generic codec's."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from wirebroker.base.clock import in_one_go
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.hot.share_fetch_response import ShareFetchResult, encode_share_fetch
from wirebroker.codecs.messages import decode_response, encode_response
from wirebroker.storage.files import FileSlice

ONE, TWO = b"1" * 16, b"2" * 16


def a_result(index: int, **fields: Any) -> ShareFetchResult:
    result = ShareFetchResult(index, fields.pop("error_code", 0))
    for name, value in fields.items():
        setattr(result, name, value)
    return result


def as_mapping(result: ShareFetchResult) -> dict[str, Any]:
    return {
        "partition_index": result.index,
        "error_code": result.error_code,
        "acknowledge_error_code": result.acknowledge_error,
        "acknowledge_error_message": result.acknowledge_message,
        "current_leader": {
            "leader_id": result.current_leader[0],
            "leader_epoch": result.current_leader[1],
        },
        "records": result.records,
        "acquired_records": [
            {"first_offset": first, "last_offset": last, "delivery_count": number}
            for first, last, number in result.acquired
        ],
    }


TOPICS: list[dict[bytes, list[ShareFetchResult]]] = [
    {},
    {ONE: [a_result(0)]},
    {
        ONE: [
            a_result(0, records=b"abc", acquired=[(1, 5, 1), (9, 9, 32_000)]),
            a_result(1, error_code=6, current_leader=(3, 7)),
        ],
        TWO: [a_result(300, acknowledge_error=121, acknowledge_message="no" * 100)],
        b"3" * 16: [a_result(index, records=b"x" * 200) for index in range(200)],
    },
]


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("topics", TOPICS)
def test_response_equals_the_generic_codecs(
    version: int, topics: dict[bytes, list[ShareFetchResult]]
):
    endpoints = [(3, "host", 9092, None), (4, "h", 1, "rack")]
    pieces = in_one_go(
        encode_share_fetch(topics, lock_timeout_ms=30_000, error_code=5, node_endpoints=endpoints)
    )
    names = ("node_id", "host", "port", "rack")
    expected = {
        "error_code": 5,
        "acquisition_lock_timeout_ms": 30_000,
        "responses": [
            {"topic_id": topic_id, "partitions": [as_mapping(result) for result in results]}
            for topic_id, results in topics.items()
        ],
        "node_endpoints": [dict(zip(names, endpoint, strict=True)) for endpoint in endpoints],
    }
    assert b"".join(pieces) == encode_response(ApiKey.SHARE_FETCH, version, expected)


def test_records_of_files_are_pieces_of_their_own():
    numbers = count()
    piece: Any = FileSlice(next(numbers), 10, 4)  # type: ignore[arg-type]
    result = a_result(0, records=piece)
    head, records, tail = in_one_go(encode_share_fetch({ONE: [result]}, lock_timeout_ms=1))
    assert records is piece
    decoded = decode_response(ApiKey.SHARE_FETCH, 2, head + b"abcd" + tail)
    assert decoded.responses[0].partitions[0].records == b"abcd"
