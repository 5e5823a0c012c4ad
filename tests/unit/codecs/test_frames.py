import struct

import pytest

from wirebroker.codecs.api_keys import API_VERSIONS, ApiKey
from wirebroker.codecs.errors import MalformedFrameError
from wirebroker.codecs.frames import parse_request_header, response_header


def frame(key: int, version: int, client_id: bytes | None, tail: bytes = b"") -> memoryview:
    length = -1 if client_id is None else len(client_id)
    header = struct.pack(">hhih", key, version, 77, length)
    return memoryview(header + (client_id or b"") + tail)


def test_an_old_version_has_no_tagged_fields() -> None:
    parsed = parse_request_header(frame(ApiKey.PRODUCE, 8, b"me", b"body"))
    assert parsed == (ApiKey.PRODUCE, 8, 77, "me", 12)


def test_flexible_header_has_classic_client_id_then_tagged_fields() -> None:
    parsed = parse_request_header(frame(ApiKey.PRODUCE, 9, b"me", b"\x00body"))
    assert parsed == (ApiKey.PRODUCE, 9, 77, "me", 13)
    parsed = parse_request_header(frame(ApiKey.PRODUCE, 9, b"me", b"\x01\x07\x02??body"))
    assert parsed[4] == 17


@pytest.mark.parametrize(("client_id", "text"), [(None, None), (b"", ""), ("ä".encode(), "ä")])
def test_the_client_id_may_be_null_or_empty(client_id: bytes | None, text: str | None) -> None:
    assert parse_request_header(frame(ApiKey.FETCH, 4, client_id))[3] == text


@pytest.mark.parametrize("version", [6, 100, 32767])
def test_unknown_api_versions_version_is_not_read_past_client_id(
    version: int,
) -> None:
    parsed = parse_request_header(frame(ApiKey.API_VERSIONS, version, b"new", b"\xff\xff\xff"))
    assert parsed == (ApiKey.API_VERSIONS, version, 77, "new", 13)


def test_known_flexible_api_versions_requests_have_tagged_fields() -> None:
    assert parse_request_header(frame(ApiKey.API_VERSIONS, 5, b"", b"\x00"))[4] == 11
    assert parse_request_header(frame(ApiKey.API_VERSIONS, 2, b""))[4] == 10


@pytest.mark.parametrize("key", [-1, 4, 7, 95, 999, 32767])
def test_a_key_that_no_broker_serves_is_refused(key: int) -> None:
    with pytest.raises(MalformedFrameError, match="unknown api key"):
        parse_request_header(frame(key, 0, b""))


@pytest.mark.parametrize("length", range(12))
def test_a_header_that_is_cut_off_is_refused(length: int) -> None:
    with pytest.raises(MalformedFrameError):
        parse_request_header(frame(ApiKey.FETCH, 12, b"me", b"\x00")[:length])


@pytest.mark.parametrize("client_id_length", [-2, -32768, 100, 32767])
def test_client_id_with_wrong_length_is_refused(client_id_length: int) -> None:
    with pytest.raises(MalformedFrameError, match="client id"):
        parse_request_header(struct.pack(">hhih", 1, 4, 0, client_id_length) + b"abc")


def test_a_client_id_that_is_not_utf_8_is_refused() -> None:
    with pytest.raises(MalformedFrameError, match="UTF-8"):
        parse_request_header(frame(ApiKey.FETCH, 4, b"\xff"))


def test_response_header_has_tagged_fields_except_for_api_versions() -> None:
    for key, versions in API_VERSIONS.items():
        for version in range(versions.min_version, versions.max_version + 1):
            flexible = version >= versions.first_flexible and key is not ApiKey.API_VERSIONS
            expected = b"\x00\x00\x00\x2a" + (b"\x00" if flexible else b"")
            assert response_header(key, version, 42) == expected
    assert response_header(ApiKey.API_VERSIONS, 0, -1) == b"\xff" * 4
