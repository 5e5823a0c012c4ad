"""The login's rights to write to topics, as a cluster answers."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AclOperation  # pyright: ignore[reportPrivateImportUsage]

from tests.unit.wirebroker.delivery.delivery_kit import SetClock
from wirebroker.delivery.service.write_rights import WriteRights

BOTH = [AclOperation.DESCRIBE, AclOperation.WRITE]
DESCRIBE = [AclOperation.DESCRIBE]


class Admin:
    """A cluster: the operations on each topic, or the code of an error."""

    def __init__(self, **answers: Any) -> None:
        self.answers: dict[str, Any] = answers
        # The topics of each request.
        self.requests: list[list[str]] = []

    def describe_topics(self, topics: Any, **_options: object) -> dict[str, Future[Any]]:
        names = sorted(topics.topic_names)
        self.requests.append(names)
        return {name: self._answer(name) for name in names}

    def _answer(self, name: str) -> Future[Any]:
        answer = self.answers.get(name, KafkaError.UNKNOWN_TOPIC_OR_PART)
        future: Future[Any] = Future()
        if isinstance(answer, int):
            future.set_exception(KafkaException(KafkaError(answer)))
        else:
            future.set_result(SimpleNamespace(authorized_operations=answer))
        return future


@pytest.mark.parametrize(
    ("answer", "is_allowed"),
    [
        (BOTH, True),
        ([AclOperation.ALL], True),
        (DESCRIBE, False),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, False),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, True),
        (KafkaError._TIMED_OUT, True),
        ([], True),
        (None, True),
    ],
)
def test_an_answer_counts_if_it_is_definite(answer: Any, *, is_allowed: bool) -> None:
    rights = WriteRights(Admin(orders=answer), SetClock())
    assert rights.may_write("orders") is is_allowed


def test_named_topics_and_all_of_before_are_asked_for_in_one_request() -> None:
    clock, admin = SetClock(), Admin(orders=BOTH, bills=BOTH, **{"retry.x": BOTH})
    rights = WriteRights(admin, clock, ["orders", "bills"])
    for _ in range(3):
        assert all(rights.may_write(name) for name in ("orders", "bills", "retry.x", "retry.y"))
        assert rights.confirm()
    assert admin.requests == [["bills", "orders"], ["retry.x", "retry.y"]]
    admin.answers["bills"] = DESCRIBE
    clock.ms += 29_999
    assert rights.may_write("bills")
    clock.ms += 1
    assert not rights.may_write("bills")
    assert admin.requests[2:] == [["bills", "orders", "retry.x", "retry.y"]]


def test_a_right_that_was_just_granted_is_noticed_and_one_request_a_second_is_made() -> None:
    clock, admin = SetClock(), Admin(orders=DESCRIBE)
    rights = WriteRights(admin, clock)
    assert [rights.may_write("orders") for _ in range(3)] == [False] * 3
    admin.answers["orders"] = BOTH
    assert not rights.may_write("orders")
    assert len(admin.requests) == 1
    clock.ms += 1_000
    assert rights.may_write("orders")


def test_denied_topics_are_asked_for_again_in_one_request() -> None:
    clock, admin = SetClock(), Admin(a=DESCRIBE, b=DESCRIBE, c=BOTH)
    rights = WriteRights(admin, clock)
    assert rights.denied(["a", "b", "c"]) == ["a", "b"]
    clock.ms += 1_000
    assert [rights.may_write(name) for name in "abc"] == [False, False, True]
    assert admin.requests == [["a", "b", "c"], ["a", "b"]]


def test_new_topics_seem_writable_until_they_are_confirmed_in_one_request() -> None:
    admin = Admin(a=BOTH, b=DESCRIBE, c=BOTH, d=DESCRIBE)
    rights = WriteRights(admin, SetClock(), ["a"])
    assert [rights.may_write(name) for name in "abcd"] == [True] * 4
    assert not rights.confirm()
    assert [rights.may_write(name) for name in "abcd"] == [True, False, True, False]
    assert rights.confirm()
    assert admin.requests == [["a"], ["b", "c", "d"]]


def test_a_cluster_that_does_not_respond_is_left_alone_for_some_seconds() -> None:
    clock, admin = SetClock(), Admin(a=KafkaError._TIMED_OUT, b=KafkaError._TIMED_OUT)
    rights = WriteRights(admin, clock)
    for _ in range(3):
        assert rights.may_write("a")
        assert rights.may_write("b")
        assert rights.confirm()
    assert admin.requests == [["a"]]
    admin.answers["b"] = DESCRIBE
    clock.ms += 5_000
    assert rights.denied(["b"]) == ["b"]


@pytest.mark.parametrize("before", [BOTH, DESCRIBE])
def test_the_former_answer_counts_while_no_broker_responds(before: Any) -> None:
    clock, admin = SetClock(), Admin(orders=before)
    rights = WriteRights(admin, clock)
    answer = rights.may_write("orders")
    admin.answers["orders"] = KafkaError._TIMED_OUT
    clock.ms += 60_000
    assert rights.may_write("orders") is answer


def test_the_number_of_remembered_topics_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wirebroker.delivery.service.write_rights._MOST_TOPICS", 100)
    rights = WriteRights(Admin(), SetClock())
    for number in range(1_000):
        assert rights.may_write(f"t{number}")
        assert rights.confirm()
    assert len(rights._answers) <= 100
