import pytest

from wirebroker.codecs.errors import MalformedFrameError
from wirebroker.codecs.hot.api_versions import (
    ApiVersionsRequest,
    encode_api_versions,
    parse_api_versions,
)


def test_old_requests_are_empty() -> None:
    assert parse_api_versions(memoryview(b""), 0, 2) == ApiVersionsRequest("", "")
    assert parse_api_versions(memoryview(b"\x00"), 0, 2) == ApiVersionsRequest("", "")


def test_client_software_name_is_read_from_version_3() -> None:
    data = memoryview(b"\x03me\x041.0\x00")
    assert parse_api_versions(data, 0, 3) == ApiVersionsRequest("me", "1.0")
    for length in range(len(data)):
        with pytest.raises(MalformedFrameError):
            parse_api_versions(data[:length], 0, 4)
    extended = memoryview(bytes(data) + b"\x00")
    assert parse_api_versions(extended, 0, 4) == ApiVersionsRequest("me", "1.0")


def test_cluster_and_node_id_are_read_from_version_5() -> None:
    head = b"\x03me\x041.0"
    data = memoryview(head + b"\x02c\x00\x00\x00\x07\x00")
    assert parse_api_versions(data, 0, 5) == ApiVersionsRequest("me", "1.0", "c", 7)
    anybody = memoryview(head + b"\x00\xff\xff\xff\xff\x00")
    assert parse_api_versions(anybody, 0, 5) == ApiVersionsRequest("me", "1.0", None, -1)
    for length in range(len(data)):
        with pytest.raises(MalformedFrameError):
            parse_api_versions(data[:length], 0, 5)


def test_unknown_version_gets_the_version_0_response() -> None:
    data = encode_api_versions(0, error_code=35, api_keys=[(18, 0, 4)])
    assert data.hex(" ") == "00 23 00 00 00 01 00 12 00 00 00 04"


def test_version_4_response_has_features_in_tagged_fields() -> None:
    data = encode_api_versions(
        4,
        api_keys=[(0, 0, 13)],
        supported_features=[("a", 0, 1)],
        finalized_features=[("a", 1)],
        finalized_features_epoch=7,
    )
    assert data.hex(" ") == (
        "00 00 02 00 00 00 00 00 0d 00 00 00 00 00 03"
        " 00 08 02 02 61 00 00 00 01 00"
        " 01 08 00 00 00 00 00 00 00 07"
        " 02 08 02 02 61 00 01 00 01 00"
    )


def test_before_version_4_features_that_start_at_level_0_are_left_out() -> None:
    features = [("a", 0, 1), ("b", 1, 2)]
    new, old = (
        encode_api_versions(version, api_keys=[], supported_features=features) for version in (4, 3)
    )
    assert b"\x02a" in new
    assert b"\x02a" not in old
    assert b"\x02b" in old
    assert encode_api_versions(3, api_keys=[], supported_features=features[:1])[-1:] == b"\x00"


def test_a_feature_at_level_0_is_not_finalized() -> None:
    data = encode_api_versions(4, api_keys=[], finalized_features=[("a", 0)])
    assert data == encode_api_versions(4, api_keys=[])
