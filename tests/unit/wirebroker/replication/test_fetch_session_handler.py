"""The follower's side of a fetch session: partitions to resend and forget."""

from __future__ import annotations

import pytest

from wirebroker.codecs.errors import ErrorCode
from wirebroker.replication.fetch_session_handler import FetchSessionHandler, FollowedOffsets

A = (b"a" * 16, 0)
B = (b"b" * 16, 1)
BEGIN = FollowedOffsets(leader_epoch=3, fetch_offset=0, last_fetched_epoch=-1, log_start_offset=0)
SESSION = 77


@pytest.fixture
def session():
    session = FetchSessionHandler()
    session.want(A, BEGIN)
    session.want(B, BEGIN)
    assert session.next_request() == (0, 0, {A: BEGIN, B: BEGIN}, [])
    session.answered(ErrorCode.NONE, SESSION)
    yield session
    session.check()


def test_only_changed_partitions_are_sent_again(session):
    further = BEGIN._replace(fetch_offset=5)
    session.want(A, further)
    session.want(B, BEGIN)
    assert session.next_request() == (SESSION, 1, {A: further}, [])
    session.answered(ErrorCode.NONE, SESSION)
    assert session.next_request() == (SESSION, 2, {}, [])


def test_partition_forgotten_during_a_request_is_sent_with_the_next(session):
    session.next_request()
    session.forget(A)
    session.answered(ErrorCode.NONE, SESSION)
    assert session.next_request() == (SESSION, 2, {}, [A])
    session.answered(ErrorCode.NONE, SESSION)
    assert session.next_request().forgotten == []


def test_partition_sent_in_the_first_request_is_forgotten_by_the_second():
    session = FetchSessionHandler()
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
def test_lost_session_is_recreated_with_all_partitions(session, error, session_id):
    session.want(A, BEGIN._replace(fetch_offset=5))
    session.forget(B)
    session.next_request()
    session.answered(error, 0)
    assert session.next_request() == (session_id, 0, {A: BEGIN._replace(fetch_offset=5)}, [])


def test_lost_request_is_sent_again_completely(session):
    session.want(A, BEGIN._replace(fetch_offset=5))
    session.next_request()
    session.failed()
    requested = {A: BEGIN._replace(fetch_offset=5), B: BEGIN}
    assert session.next_request() == (SESSION, 0, requested, [])
