"""Injected errors against Apache Kafka's own classes, by one Java process (ErrorResponses.java).

Java parses each response as its clients do and finds the error in it. It also makes the error
response that Apache Kafka makes to the same request: ours is the same but for the messages and for
what `DIFFERENCES` lists.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.java.java_program import JavaProgram
from tests.support.protocol.message_values import versions_of
from tests.support.protocol.sample_requests import SampleRequests
from tests.support.protocol.served_keys import served_keys
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.messages import decode_request, decode_response, encode_request
from wirebroker.testing.faults.refusals import refusal_of

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.java

REQUEST, RESPONSE = range(2)
SAMPLES: Final = SampleRequests(bytes([7] * 16))
# Metadata errors are put into the broker's own response: test_faults.py looks at those.
KEYS: Final = sorted(set(served_keys()) - {ApiKey.METADATA})
DIFFERENCES: Final[dict[ApiKey, str]] = {
    ApiKey.FETCH: "only errors of sessions are at the top; the others are the partitions'",
    ApiKey.JOIN_GROUP: "the member id of the request",
    ApiKey.DESCRIBE_LOG_DIRS: "versions 1 and 2 have an error only in a directory's row",
    ApiKey.CREATE_DELEGATION_TOKEN: "no principal",
    ApiKey.LIST_PARTITION_REASSIGNMENTS: "no partitions besides the error",
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: "librdkafka crashes on Kafka's",
}


class Java:
    """A running ErrorResponses."""

    def __init__(self, program: JavaProgram) -> None:
        self._program = program

    def codes(self, key: ApiKey, version: int, body: bytes) -> set[int]:
        """Return the error codes that Kafka's clients count in a response."""
        return {int(code) for code in self._ask(RESPONSE, key, version, 0, body).split(b",")[:-1]}

    def refusal(self, key: ApiKey, version: int, code: ErrorCode, body: bytes) -> bytes:
        """Return Kafka's error response to a request."""
        return self._ask(REQUEST, key, version, code, body)

    def _ask(self, kind: int, key: ApiKey, version: int, code: int, body: bytes) -> bytes:
        head = struct.pack(">bhhhi", kind, key, version, code, len(body))
        status, (answer,) = self._program.ask(head + body, 1)
        assert status == 0, f"{key.name} v{version}: Java refuses {body.hex()}: {answer.decode()}"
        return answer


# Java's ShareFetchResponse does not count the errors of acknowledgements.
UNCOUNTED = {(ApiKey.SHARE_FETCH, ErrorCode.INVALID_RECORD_STATE)}


@pytest.fixture(scope="module")
def java() -> Iterator[Java]:
    program = JavaProgram("ErrorResponses")
    yield Java(program)
    program.close()


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_java_finds_every_error_in_every_version(java: Java, key: ApiKey) -> None:
    for version in versions_of(key):
        body = decode_request(key, version, encoded(key, version))
        for code in set(ErrorCode) - {ErrorCode.NONE}:
            codes = java.codes(key, version, refusal_of(key, version, body, code))
            expected = set[int]() if (key, code) in UNCOUNTED else {code}
            assert codes - {0} == expected, (version, code)


@pytest.mark.parametrize("key", [k for k in KEYS if k not in DIFFERENCES], ids=lambda key: key.name)
def test_error_is_in_the_fields_where_kafka_puts_it(java: Java, key: ApiKey) -> None:
    for version in versions_of(key):
        request = encoded(key, version)
        kafka_response = java.refusal(key, version, ErrorCode.POLICY_VIOLATION, request)
        body = decode_request(key, version, request)
        wirebroker_response = refusal_of(key, version, body, ErrorCode.POLICY_VIOLATION)
        assert fields(key, version, wirebroker_response) == fields(key, version, kafka_response)


def encoded(key: ApiKey, version: int) -> bytes:
    return encode_request(key, version, SAMPLES.body(key, version))


def fields(key: ApiKey, version: int, answer: bytes) -> Any:
    return without_messages(decode_response(key, version, answer).as_dict())


def without_messages(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: without_messages(field)
            for name, field in value.items()
            if name != "error_message"
        }
    return [without_messages(item) for item in value] if isinstance(value, list) else value
