from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from wirebroker.base.clock import finish, in_one_go
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.share_partitions import share_sessions
from wirebroker.coordinator.share_partitions.share_sessions import (
    SessionMember,
    ShareFetchSession,
    ShareSessionPartition,
    ShareSessions,
    new_session,
    next_epoch,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

ANN, BOB = SessionMember("g", "ann"), SessionMember("g", "bob")
ZERO, ONE = ShareSessionPartition(bytes(16), 0), ShareSessionPartition(bytes(16), 1)


def refusal(call, *arguments) -> ErrorCode:
    with pytest.raises(KafkaError) as raised:
        call(*arguments)
    return raised.value.code


def opened(
    sessions: ShareSessions,
    member: SessionMember,
    connection: str,
    named: Mapping[ShareSessionPartition, str | None],
) -> ShareFetchSession:
    session = in_one_go(new_session(member, connection, named))
    sessions.open(session)
    return session


def test_epochs_rise_and_wrap():
    sessions = ShareSessions(10)
    session = opened(sessions, ANN, "c", {ZERO: "t"})
    assert sessions.check(ANN, 1) is session
    assert refusal(sessions.check, ANN, 2) == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    finish(sessions.change(session, {}, ()))
    assert session.epoch == 2
    sessions.acknowledge(ANN, 2)
    assert session.epoch == 3
    assert sessions.check(ANN, -1) is session
    assert next_epoch(0x7FFFFFFF) == 1


def test_session_must_exist():
    sessions = ShareSessions(10)
    assert refusal(sessions.check, ANN, 1) == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert refusal(sessions.acknowledge, ANN, -1) == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert refusal(sessions.acknowledge, ANN, 0) == ErrorCode.INVALID_SHARE_SESSION_EPOCH


def test_partitions_are_sent_when_they_have_news():
    sessions = ShareSessions(10)
    session = opened(sessions, ANN, "c", {ZERO: "t"})
    assert not session.must_send(ZERO, has_records=False, has_error=False)
    assert session.must_send(ZERO, has_records=True, has_error=False)
    assert session.must_send(ZERO, has_records=False, has_error=True)
    # After an error, once more.
    assert session.must_send(ZERO, has_records=False, has_error=False)
    assert not session.must_send(ZERO, has_records=False, has_error=False)
    finish(sessions.change(session, {ONE: None, ZERO: "other"}, ()))
    assert session.must_send(ONE, has_records=False, has_error=False)
    assert not session.must_send(ZERO, has_records=False, has_error=False)
    assert session.named() == {ZERO: "t", ONE: None}


def test_partitions_with_records_come_last_next_time():
    sessions = ShareSessions(10)
    session = opened(sessions, ANN, "c", {ZERO: "t", ONE: "t"})
    session.must_send(ZERO, has_records=True, has_error=False)
    assert list(session.named()) == [ONE, ZERO]


def test_forgotten_partitions_are_removed():
    sessions = ShareSessions(10)
    session = opened(sessions, ANN, "c", {ZERO: "t", ONE: "t"})
    finish(sessions.change(session, {}, [ZERO]))
    assert (list(session.named()), sessions.partition_count) == ([ONE], 1)


def test_number_of_sessions_is_limited():
    sessions = ShareSessions(1)
    opened(sessions, ANN, "c", {})
    assert refusal(opened, sessions, BOB, "c", {}) == ErrorCode.SHARE_SESSION_LIMIT_REACHED
    opened(sessions, ANN, "c", {})  # replaces its own
    sessions.remove(ANN)
    opened(sessions, BOB, "c", {})
    assert len(sessions) == 1


def test_number_of_partitions_is_limited(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(share_sessions, "MOST_PARTITIONS", 2)
    sessions = ShareSessions(10)
    session = opened(sessions, ANN, "c", {ZERO: "t", ONE: "t"})
    more = {ShareSessionPartition(bytes(16), 2): "t"}
    limit = ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert refusal(sessions.change, session, more, ()) == limit
    assert refusal(opened, sessions, BOB, "c", more) == limit
    assert session.epoch == 1
    sessions.remove(ANN)
    opened(sessions, BOB, "c", more)


def test_sessions_end_with_their_connection():
    sessions = ShareSessions(10)
    opened(sessions, ANN, "c", {})
    opened(sessions, BOB, "c", {})
    opened(sessions, BOB, "d", {})
    assert sessions.first_of_connection("c") == ANN
    sessions.remove(ANN)
    assert sessions.first_of_connection("c") is None
    assert sessions.has_members("g")
    sessions.remove(BOB)
    assert not sessions.has_members("g")
    opened(sessions, ANN, "c", {ZERO: "t"})
    sessions.clear()
    assert (len(sessions), sessions.partition_count) == (0, 0)
    assert sessions.first_of_connection("c") is None


def test_session_that_ends_while_it_changes_is_not_counted():
    many = {ShareSessionPartition(bytes(16), index): "t" for index in range(1_000)}
    sessions = ShareSessions(10)
    session = opened(sessions, ANN, "c", {ZERO: "t"})
    steps = sessions.change(session, many, [ZERO])
    next(steps)
    assert sessions.partition_count == len(session) == 200
    sessions.remove(ANN)
    finish(steps)
    assert sessions.partition_count == 0
