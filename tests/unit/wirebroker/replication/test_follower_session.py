"""The follower's side of a fetch session: partitions to resend and forget."""

from __future__ import annotations

import pytest

from wirebroker.codecs.errors import ErrorCode
from wirebroker.replication.follower_session import FollowedOffsets, FollowerSession

A = (b"a" * 16, 0)
B = (b"b" * 16, 1)
BEGIN = FollowedOffsets(leader_epoch=3, fetch_offset=0, last_fetched_epoch=-1, log_start_offset=0)
SESSION = 77


@pytest.fixture
def session():
    session = FollowerSession()
    session.want(A, BEGIN)
    session.want(B, BEGIN)
    assert session.next_request() == (0, 0, {A: BEGIN, B: BEGIN}, [])
    session.answered(ErrorCode.NONE, SESSION)
    yield session
    session.check()


def test_only_what_has_changed_is_said_again(session):
    further = BEGIN._replace(fetch_offset=5)
    session.want(A, further)
    session.want(B, BEGIN)
    assert session.next_request() == (SESSION, 1, {A: further}, [])
    session.answered(ErrorCode.NONE, SESSION)
    assert session.next_request() == (SESSION, 2, {}, [])


def test_what_is_forgotten_while_an_answer_is_on_its_way_is_told_with_the_next_request(session):
    session.next_request()
    session.forget(A)
    session.answered(ErrorCode.NONE, SESSION)
    assert session.next_request() == (SESSION, 2, {}, [A])
    session.answered(ErrorCode.NONE, SESSION)
    assert session.next_request().forgotten == []


def test_what_the_first_request_has_named_is_forgotten_by_the_second():
    session = FollowerSession()
    session.want(A, BEGIN)
    session.want(B, BEGIN)
    session.next_request()
    session.forget(B)
    session.answered(ErrorCode.NONE, SESSION)
    assert session.next_request() == (SESSION, 1, {}, [B])
    session.check()


@pytest.mark.parametrize(
    ("error", "session_id"),
    [
        (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0),
        (ErrorCode.INVALID_FETCH_SESSION_EPOCH, SESSION),
    ],
)
def test_a_session_that_is_lost_is_begun_anew_with_all_that_is_wanted(session, error, session_id):
    session.want(A, BEGIN._replace(fetch_offset=5))
    session.forget(B)
    session.next_request()
    session.answered(error, 0)
    assert session.next_request() == (session_id, 0, {A: BEGIN._replace(fetch_offset=5)}, [])


def test_a_request_that_was_lost_loses_nothing(session):
    session.want(A, BEGIN._replace(fetch_offset=5))
    session.next_request()
    session.failed()
    wanted = {A: BEGIN._replace(fetch_offset=5), B: BEGIN}
    assert session.next_request() == (SESSION, 0, wanted, [])
