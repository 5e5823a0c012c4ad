"""Missing permissions in the errors of Spark, its tasks and both clients."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AclOperation

from wirebroker.pipelines.delivery.rights import Right, _allowed, refusal_of


class Target(NamedTuple):
    """A copy of the class in delivery.py, which requires PyArrow."""

    kafka: dict[str, str]
    job: str
    topic: str
    dead_letters: str


TARGET = Target({"bootstrap.servers": "x", "sasl.username": "ana"}, "job", "to", "")
LOGIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="eve" x="y";'


class _SparkError(Exception):
    """Like those of PySpark, whose texts have no stack."""

    def __init__(self, message: str, stack: str) -> None:
        super().__init__(message)
        self._stackTrace = stack


def test_transactional_id_is_reported_as_a_prefix():
    text = (
        "Traceback ...\ncimpl.KafkaException: KafkaError{FATAL,"
        'code=TRANSACTIONAL_ID_AUTHORIZATION_FAILED,val=53,str="Failed to acquire ..."}\n'
    )
    assert str(refusal_of(RuntimeError(text), TARGET, {})) == (
        "the login of [kafka] may not write transactional-id job.to.*: wirebroker acl create "
        "--allow User:ana --operation write --transactional-id job.to. --prefixed"
    )


@pytest.mark.parametrize(
    ("reader", "user"),
    [({}, "ana"), ({"kafka.sasl.jaas.config": LOGIN}, "eve"), ({"kafka.x": 1}, "ana")],
)
def test_refused_read_is_reported_with_the_readers_login(reader, user):
    stack = "org.apache.kafka.common.errors.TopicAuthorizationException: Not authorized to access "
    error = _SparkError("Job aborted due to stage failure", f"{stack}topics: [from, other]\n\tat x")
    refusal = str(refusal_of(error, TARGET, reader))
    assert refusal == Right("read", "topic", "from").told("reader", user)
    error = _SparkError("GroupAuthorizationException: Not authorized to access group: g-1", "")
    assert str(refusal_of(error, TARGET, reader)) == Right("read", "group", "g-1").told(
        "reader", user
    )


def test_unnamed_topic_is_inferred_from_the_failing_step():
    text = "ExecutionException: TopicAuthorizationException: Topic authorization"
    for stack, name in (("MicroBatchExecution", "from"), ("ForeachBatchSink.addBatch", "table")):
        error = _SparkError(f"{text} failed.", f"\tat {stack}")
        refusal = str(refusal_of(error, TARGET, {}, ("from", "table")))
        assert refusal == Right("read", "topic", name).told("reader", "ana")


def test_other_failures_are_not_authorization_errors():
    for text in ("code=_ALL_BROKERS_DOWN", "TopicAuthorizationException", "nothing"):
        assert refusal_of(RuntimeError(text), TARGET, {}) is None


def test_login_without_a_name_uses_a_placeholder():
    assert "--allow User:NAME " in Right("read", "group", "g").told("kafka", "")


def _answer(operations: list[AclOperation] | None = None, error: int | None = None) -> Future[Any]:
    future: Future[Any] = Future()
    if error is None:
        future.set_result(SimpleNamespace(authorized_operations=operations))
    else:
        future.set_exception(KafkaException(KafkaError(error)))
    return future


def test_unknown_permissions_do_not_prevent_the_start():
    for error in (
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._TIMED_OUT,
    ):
        assert _allowed(_answer(error=error)) == {"read", "write"}
    for operations in (None, [], [AclOperation.ALL]):
        assert _allowed(_answer(operations)) == {"read", "write"}
    assert _allowed(_answer([AclOperation.READ, AclOperation.DESCRIBE])) == {"read", "describe"}
    assert _allowed(_answer(error=KafkaError.GROUP_AUTHORIZATION_FAILED)) == set()
