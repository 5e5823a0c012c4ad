"""Records as the intake passes them to the machine."""

from __future__ import annotations

from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException

from wirebroker.base.clock import SystemClock
from wirebroker.delivery.service.inbox import InboxClosedError
from wirebroker.delivery.service.intake import Intake, _check, _member_id, _received


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


def test_a_member_that_subscribes_to_other_partitions_has_another_id():
    first = _member_id("a1", {"deliver": 8, "retry": 8})
    assert first == _member_id("a1", {"retry": 8, "deliver": 8})
    others = ({"deliver": 8}, {"deliver": 16, "retry": 8}, {"deliver": 8, "retry": 8, "later": 8})
    assert len({first, *(_member_id("a1", counts) for counts in others)}) == 4
    assert all(member.startswith("a1-") for member in (first, _member_id("a1", {})))


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


class SlowOffsets:
    """A consumer whose committed offsets wait for an open transaction."""

    def __init__(self, code: int, slow_answers: int) -> None:
        self.limits_s: list[float] = []
        self._code = code
        self._slow_answers = slow_answers

    def committed(self, places: list[Any], timeout: float) -> list[Any]:
        self.limits_s.append(timeout)
        if len(self.limits_s) <= self._slow_answers:
            raise KafkaException(KafkaError(self._code))
        return places


def _intake(consumer: SlowOffsets, *, is_closing: bool) -> Any:
    intake: Any = Intake.__new__(Intake)
    intake._clock = SystemClock()
    intake._consumer = consumer
    intake._is_closing = is_closing
    return intake


def test_committed_offsets_are_asked_for_again_while_a_transaction_is_open():
    consumer = SlowOffsets(KafkaError._TIMED_OUT, 2)
    assert _intake(consumer, is_closing=False)._committed(["place"]) == ["place"]
    assert consumer.limits_s == [5.0] * 3


@pytest.mark.parametrize(
    ("code", "is_closing", "error"),
    [
        (KafkaError.GROUP_AUTHORIZATION_FAILED, False, KafkaException),
        (KafkaError._TIMED_OUT, True, InboxClosedError),
    ],
)
def test_committed_offsets_are_not_waited_for(code, is_closing, error):
    with pytest.raises(error):
        _intake(SlowOffsets(code, 1), is_closing=is_closing)._committed(["place"])
