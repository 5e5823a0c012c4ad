"""Records as the intake passes them to the machine."""

from __future__ import annotations

from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException

from wirebroker.delivery.service.intake import _check, _received


class UnreadableMessage:
    """A message with a header name that is not UTF-8, as confluent-kafka reports it."""

    def __init__(self) -> None:
        self.calls = 0

    def topic(self) -> str:
        return "deliver"

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return 7

    def timestamp(self) -> tuple[int, int]:
        return 1, 1_800_000_000_000

    def key(self) -> bytes:
        return b"k"

    def value(self) -> bytes:
        return b"v"

    def headers(self) -> None:
        self.calls += 1
        raise SystemError("returned a result with an exception set")


def test_a_header_name_that_is_not_utf8_is_a_problem_of_the_record():
    message = UnreadableMessage()
    record = _received(cast("Any", message), 0)
    assert (record.headers, record.value) == ((), b"v")
    assert record.problem.startswith("unreadable headers")
    assert message.calls == 1


@pytest.mark.parametrize(
    "code",
    [KafkaError._FATAL, KafkaError.FENCED_INSTANCE_ID, KafkaError.TOPIC_AUTHORIZATION_FAILED],
)
def test_an_error_after_which_the_consumer_cannot_go_on_ends_the_instance(code):
    with pytest.raises(KafkaException):
        _check(KafkaError(code, "fenced"))


def test_an_error_that_the_consumer_retries_is_a_warning(caplog):
    _check(KafkaError(KafkaError._TRANSPORT, "broker down"))
    assert "broker down" in caplog.text
