"""The login's rights to write to topics, as a cluster answers."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AclOperation  # pyright: ignore[reportPrivateImportUsage]

from tests.unit.wirebroker.delivery.delivery_kit import RULES, SetClock
from wirebroker.delivery.service.rights import check_rights
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
    assert rights.denied(["orders"]) == ([] if is_allowed else ["orders"])


def test_used_topics_are_asked_for_in_one_request_and_again_after_a_time() -> None:
    clock, admin = SetClock(), Admin(orders=BOTH, bills=BOTH, **{"retry.x": BOTH})
    rights = WriteRights(admin, clock, ["orders", "bills"])
    for _ in range(3):
        assert rights.denied(["orders", "bills", "retry.x"]) == []
    assert admin.requests == [["bills", "orders", "retry.x"]]
    admin.answers["bills"] = DESCRIBE
    clock.ms += 29_999
    assert rights.denied(["bills"]) == []
    clock.ms += 1
    assert rights.denied(["bills"]) == ["bills"]
    clock.ms += 30_000
    assert rights.denied(["orders"]) == []
    assert admin.requests[1:] == [["bills", "orders", "retry.x"], ["orders"]]


def test_a_plan_is_confirmed_if_its_topics_are_as_they_seemed() -> None:
    clock, admin = SetClock(), Admin(a=BOTH, b=DESCRIBE, c=BOTH, d=DESCRIBE)
    rights = WriteRights(admin, clock, ["a"])
    assert [rights.may_write(name) for name in "abcd"] == [True] * 4
    assert not rights.confirm()
    assert [rights.may_write(name) for name in "abcd"] == [True, False, True, False]
    assert rights.confirm()
    assert admin.requests == [["a", "b", "c", "d"]]
    admin.answers["b"] = BOTH
    clock.ms += 1_000
    assert not rights.may_write("b")
    assert not rights.confirm()
    assert rights.may_write("b")


def test_denied_topics_are_asked_for_again_in_one_request_a_second() -> None:
    clock, admin = SetClock(), Admin(a=DESCRIBE, b=DESCRIBE, c=BOTH)
    rights = WriteRights(admin, clock)
    for _ in range(3):
        assert rights.denied(["a", "b", "c"]) == ["a", "b"]
    clock.ms += 1_000
    assert rights.denied(["a", "b", "c"]) == ["a", "b"]
    assert admin.requests == [["a", "b", "c"], ["a", "b"]]


def test_a_cluster_that_does_not_respond_is_left_alone_and_asked_again_for_the_same() -> None:
    clock, admin = SetClock(), Admin(a=KafkaError._TIMED_OUT, b=KafkaError._TIMED_OUT)
    rights = WriteRights(admin, clock)
    for _ in range(3):
        assert rights.denied(["a", "b"]) == []
    assert admin.requests == [["a", "b"]]
    admin.answers["b"] = DESCRIBE
    clock.ms += 5_000
    assert rights.confirm()
    assert admin.requests[1:] == [["a", "b"]]
    assert not rights.may_write("b")


@pytest.mark.parametrize("before", [BOTH, DESCRIBE])
def test_the_former_answer_counts_while_no_broker_responds(before: Any) -> None:
    clock, admin = SetClock(), Admin(orders=before)
    rights = WriteRights(admin, clock)
    denied = rights.denied(["orders"])
    admin.answers["orders"] = KafkaError._TIMED_OUT
    clock.ms += 60_000
    assert rights.denied(["orders"]) == denied


def test_a_request_has_a_thousand_topics_and_a_refresh_goes_on_later() -> None:
    names = [f"t{number:04}" for number in range(2_500)]
    clock, admin = SetClock(), Admin(**dict.fromkeys(names, BOTH))
    rights = WriteRights(admin, clock)
    assert rights.denied(names) == []
    clock.ms += 30_000
    for _ in range(4):
        assert rights.confirm()
    assert [len(request) for request in admin.requests] == [1_000, 1_000, 500] * 2


def test_missing_topics_are_not_remembered_and_others_are_bounded(monkeypatch: Any) -> None:
    monkeypatch.setattr("wirebroker.delivery.service.write_rights._MOST_TOPICS", 100)
    admin = Admin(**{f"t{number}": BOTH for number in range(0, 1_000, 2)})
    rights = WriteRights(admin, SetClock())
    for number in range(1_000):
        assert rights.denied([f"t{number}"]) == []
    assert list(rights._answers) == [f"t{number}" for number in range(800, 1_000, 2)]


def test_the_rights_are_not_taken_as_granted_if_no_broker_responds() -> None:
    names = ("deliver", "deliver.dead-letters", "retry", "retry.dead-letters", "invoices")
    admin = Admin(**dict.fromkeys((*names, RULES.pending_topic), KafkaError._TRANSPORT))
    with pytest.raises(KafkaException, match="_TRANSPORT"):
        check_rights(admin, RULES, "delivery")
