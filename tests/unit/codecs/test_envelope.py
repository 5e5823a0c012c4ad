"""Envelopes byte for byte as Kafka's brokers write them, and invalid ones."""

import pytest

from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.client_frames import request_header
from wirebroker.codecs.envelope import (
    Principal,
    decode_host,
    decode_principal,
    encode_host,
    encode_principal,
    parse_header,
)
from wirebroker.codecs.errors import MalformedFrameError


def test_a_principal_is_kafkas_default_principal_data():
    encoded = encode_principal(Principal())
    assert encoded == b"\x00\x00\x05User\x0aANONYMOUS\x00\x00"
    assert decode_principal(encoded) == Principal()
    other = Principal("Role", "ä", is_by_token=True)
    assert decode_principal(encode_principal(other)) == other


@pytest.mark.parametrize("size", range(19))
def test_a_principal_that_ends_too_soon_is_refused(size):
    with pytest.raises(MalformedFrameError):
        decode_principal(encode_principal(Principal())[:size])


@pytest.mark.parametrize("data", [b"\x00\x01\x05User\x01\x00\x00", b"\x00\x00\x02\xff\x01\x00\x00"])
def test_a_principal_of_another_version_or_in_another_encoding_is_refused(data):
    with pytest.raises(MalformedFrameError):
        decode_principal(data)


@pytest.mark.parametrize("host", ["127.0.0.1", "fe80::1"])
def test_client_addresses_round_trip(host):
    assert decode_host(encode_host(host)) == host


def test_invalid_address_is_unknown_or_refused():
    assert decode_host(encode_host("localhost")) == "0.0.0.0"
    with pytest.raises(MalformedFrameError):
        decode_host(b"12345")


@pytest.mark.parametrize(
    ("key", "version"), [(ApiKey.CREATE_TOPICS, 7), (ApiKey.CREATE_TOPICS, 4), (ApiKey.ENVELOPE, 0)]
)
def test_a_header_is_read_as_it_is_written(key, version):
    head = request_header(key, version, 9, b"me")
    assert parse_header(head) == (key, version, 9, "me", len(head))


def test_invalid_envelope_headers_are_refused():
    good = request_header(ApiKey.CREATE_TOPICS, 7, 9, b"me")
    for bad in (
        good[:5],
        b"\x7f\x00" + good[2:],
        good[:3] + b"\x63" + good[4:],
        good[:8] + b"\x00\x50" + good[10:],
        good[:10] + b"\xff\xfe" + good[12:],
    ):
        with pytest.raises(MalformedFrameError):
            parse_header(bad)
