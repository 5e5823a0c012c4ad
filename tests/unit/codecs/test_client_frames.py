import pytest

from wirebroker.codecs.api_keys import (
    API_VERSIONS,
    CONTROLLER_API_VERSIONS,
    SPOKEN_VERSIONS,
    ApiKey,
)
from wirebroker.codecs.client_frames import parse_response_header, request_header
from wirebroker.codecs.errors import MalformedFrameError
from wirebroker.codecs.frames import parse_request_header, response_header
from wirebroker.codecs.messages import request_message, response_message

BOTH_ENDS = [
    (key, version)
    for key, versions in API_VERSIONS.items()
    for version in {versions.min_version, versions.max_version}
]


@pytest.mark.parametrize(("key", "version"), BOTH_ENDS)
def test_encoded_frames_are_decoded_by_the_other_side(key, version):
    head = request_header(key, version, 1234567, b"me")
    assert parse_request_header(head) == (key, version, 1234567, "me", len(head))
    answer = response_header(key, version, 1234567)
    assert parse_response_header(key, version, answer) == (1234567, len(answer))


def test_a_controllers_key_has_a_flexible_header():
    assert request_header(ApiKey.BROKER_REGISTRATION, 4, 1, b"") == bytes.fromhex(
        "003e 0004 00000001 0000 00"
    )


@pytest.mark.parametrize("frame", [b"", b"\0\0\0", b"\0\0\0\1", b"\0\0\0\1\1\0\5"])
def test_a_header_that_is_cut_off_is_refused(frame):
    with pytest.raises(MalformedFrameError):
        parse_response_header(ApiKey.FETCH, 17, frame)


def test_broker_and_controller_api_keys_do_not_overlap():
    assert not set(API_VERSIONS) & set(CONTROLLER_API_VERSIONS)


@pytest.mark.parametrize("key", SPOKEN_VERSIONS)
def test_every_supported_version_has_a_codec(key):
    # Produce 0 to 2 is advertised and refused (api_keys.py).
    lowest = 3 if key == ApiKey.PRODUCE else SPOKEN_VERSIONS[key].min_version
    spoken = set(range(lowest, SPOKEN_VERSIONS[key].max_version + 1))
    assert spoken <= set(request_message(key).versions)
    assert spoken <= set(response_message(key).versions)
