"""Incremental fetch sessions: the rules of KIP-227, without a broker."""

from __future__ import annotations

import random
from typing import Any

import pytest

from wirebroker.base.clock import in_one_go
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.hot.fetch import FetchPartition, FetchRequest, FetchTopic
from wirebroker.codecs.hot.fetch_response import FetchPartitionResult
from wirebroker.codecs.primitives import ZERO_UUID
from wirebroker.request.fetch_sessions import (
    EVICTION_MS,
    MAX_EPOCH,
    FetchContext,
    FetchSessions,
    requested_partitions,
)

BY_NAME, BY_ID = 12, 13
TOPIC_ID = bytes(range(16))


def request(
    *indexes: int,
    session: tuple[int, int] = (0, 0),
    offset: int = 0,
    forgotten: tuple[int, ...] = (),
    version: int = BY_NAME,
) -> FetchRequest:
    name, topic_id = ("t", ZERO_UUID) if version < BY_ID else ("", TOPIC_ID)
    partitions = [FetchPartition(index, -1, offset, -1, -1, 1 << 20) for index in indexes]
    return FetchRequest(
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=1 << 20,
        isolation_level=0,
        session_id=session[0],
        session_epoch=session[1],
        topics=[FetchTopic(name, topic_id, partitions)] if partitions else [],
        forgotten_topics=[(name, topic_id, list(forgotten))] if forgotten else [],
    )


class Fetcher:
    def __init__(self, sessions: FetchSessions, version: int = BY_NAME) -> None:
        self.sessions = sessions
        self.version = version
        self.now_ms = 0
        self.owner: Connection | None = None
        # Fields of the next results, by partition.
        self.state: dict[int, dict] = {}

    def begin(self, fetch_request: FetchRequest) -> FetchContext:
        requested = requested_partitions(fetch_request)
        context = self.sessions.context(
            fetch_request, requested, version=self.version, now_ms=self.now_ms, owner=self.owner
        )
        in_one_go(context.resume(fetch_request, requested))
        return context

    def finish(self, context: FetchContext) -> list[int]:
        results = []
        for partition in context.partitions:
            index = partition.wanted.index
            fields: dict[str, Any] = {"high_watermark": 0, "log_start_offset": 0, "records": b""}
            fields |= self.state.get(index, {})
            results.append((partition, FetchPartitionResult(index, **fields)))
        in_one_go(context.select(results, version=self.version, now_ms=self.now_ms))
        return [partition.wanted.index for partition, _ in context.chosen]

    def ask(self, *indexes: int, **fields) -> tuple[FetchContext, list[int]]:
        context = self.begin(request(*indexes, version=self.version, **fields))
        return context, self.finish(context)

    def open(self, *indexes: int) -> int:
        context, answered_indexes = self.ask(*indexes)
        assert answered_indexes == list(indexes)
        assert context.session_id != 0
        return context.session_id


@pytest.fixture
def fetcher():
    return Fetcher(FetchSessions(10, random.Random(7)))


def test_a_request_without_a_session_gets_none(fetcher):
    context, answered_indexes = fetcher.ask(0, 1, session=(0, -1))
    assert (context.session_id, answered_indexes, len(fetcher.sessions)) == (0, [0, 1], 0)


def test_full_request_opens_a_session_and_returns_all_partitions(fetcher):
    context, answered_indexes = fetcher.ask(0, 1)
    assert context.session_id > 0
    assert answered_indexes == [0, 1]
    assert len(fetcher.sessions) == 1


def test_incremental_request_reads_all_and_returns_changed_partitions(fetcher):
    session = fetcher.open(0, 1, 2)
    fetcher.state[1] = {"records": b"x"}
    context, answered_indexes = fetcher.ask(session=(session, 1))
    assert [partition.wanted.index for partition in context.partitions] == [0, 1, 2]
    assert answered_indexes == [1]
    assert context.session_id == session


@pytest.mark.parametrize(
    "news",
    [
        {"high_watermark": 5},
        {"log_start_offset": 5},
        {"error_code": ErrorCode.NOT_LEADER_OR_FOLLOWER},
        {"diverging_epoch": (1, 2)},
        {"preferred_read_replica": 3},
    ],
)
def test_changed_partition_without_records_is_returned(fetcher, news):
    session = fetcher.open(0, 1)
    fetcher.state[0] = news
    assert fetcher.ask(session=(session, 1))[1] == [0]


def test_unchanged_partition_is_not_returned_again(fetcher):
    session = fetcher.open(0)
    fetcher.state[0] = {"high_watermark": 5, "log_start_offset": 2}
    assert fetcher.ask(session=(session, 1))[1] == [0]
    assert fetcher.ask(session=(session, 2))[1] == []


def test_error_is_repeated_and_its_end_is_returned(fetcher):
    session = fetcher.open(0)
    fetcher.state[0] = {"error_code": ErrorCode.NOT_LEADER_OR_FOLLOWER, "high_watermark": -1}
    assert fetcher.ask(session=(session, 1))[1] == [0]
    assert fetcher.ask(session=(session, 2))[1] == [0]
    fetcher.state[0] = {}
    assert fetcher.ask(session=(session, 3))[1] == [0]
    assert fetcher.ask(session=(session, 4))[1] == []


def test_partitions_are_added_changed_and_forgotten(fetcher):
    session = fetcher.open(0, 1)
    context, answered_indexes = fetcher.ask(2, session=(session, 1), offset=7, forgotten=(0,))
    assert [
        (partition.wanted.index, partition.wanted.fetch_offset) for partition in context.partitions
    ] == [
        (1, 0),
        (2, 7),
    ]
    assert answered_indexes == [2]
    context, _ = fetcher.ask(1, session=(session, 2), offset=9)
    assert [partition.wanted.fetch_offset for partition in context.partitions] == [9, 7]


def test_served_partitions_move_to_the_end_to_avoid_starvation(fetcher):
    session = fetcher.open(0, 1, 2)
    fetcher.state[0] = {"records": b"x"}
    fetcher.ask(session=(session, 1))
    context, _ = fetcher.ask(session=(session, 2))
    assert [partition.wanted.index for partition in context.partitions] == [1, 2, 0]


def test_a_wrong_epoch_is_refused(fetcher):
    session = fetcher.open(0)
    for epoch in (2, 7):
        context, answered_indexes = fetcher.ask(session=(session, epoch))
        assert context.error == ErrorCode.INVALID_FETCH_SESSION_EPOCH
        assert (context.session_id, context.partitions, answered_indexes) == (0, [], [])
    assert fetcher.ask(session=(session, 1))[0].error == ErrorCode.NONE


def test_the_same_request_twice_is_refused_the_second_time(fetcher):
    session = fetcher.open(0)
    assert fetcher.ask(session=(session, 1))[0].error == ErrorCode.NONE
    assert fetcher.ask(session=(session, 1))[0].error == ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_an_unknown_session_is_refused(fetcher):
    context, _ = fetcher.ask(session=(12345, 1))
    assert context.error == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_session_cannot_switch_between_names_and_ids(fetcher):
    session = fetcher.open(0)
    fetcher.version = BY_ID
    context, _ = fetcher.ask(session=(session, 1))
    assert context.error == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    by_id = fetcher.open(0)
    fetcher.version = BY_NAME
    context, _ = fetcher.ask(session=(by_id, 1))
    assert context.error == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_session_by_ids_identifies_partitions_by_topic_id(fetcher):
    fetcher.version = BY_ID
    session = fetcher.open(0, 1)
    context, _ = fetcher.ask(2, session=(session, 1), forgotten=(0,))
    assert [(partition.topic_id, partition.wanted.index) for partition in context.partitions] == [
        (TOPIC_ID, 1),
        (TOPIC_ID, 2),
    ]


def test_final_epoch_closes_the_session_with_a_full_response(fetcher):
    session = fetcher.open(0, 1)
    context, answered_indexes = fetcher.ask(0, session=(session, -1))
    assert (context.session_id, answered_indexes, len(fetcher.sessions)) == (0, [0], 0)


def test_epoch_zero_with_an_id_replaces_the_session(fetcher):
    session = fetcher.open(0, 1)
    context, answered_indexes = fetcher.ask(1, session=(session, 0))
    assert answered_indexes == [1]
    assert context.session_id not in {0, session}
    assert len(fetcher.sessions) == 1


def test_a_session_without_partitions_ends(fetcher):
    session = fetcher.open(0)
    context, answered_indexes = fetcher.ask(session=(session, 1), forgotten=(0,))
    assert (context.session_id, answered_indexes, len(fetcher.sessions)) == (0, [], 0)


def test_epoch_wraps_to_one_after_the_maximum(fetcher):
    session = fetcher.open(0)
    fetcher.sessions._sessions[session].epoch = MAX_EPOCH
    assert fetcher.ask(session=(session, MAX_EPOCH))[0].error == ErrorCode.NONE
    assert fetcher.ask(session=(session, 1))[0].error == ErrorCode.NONE


def test_response_older_than_the_session_epoch_is_an_error(fetcher):
    session = fetcher.open(0)
    slow = fetcher.begin(request(session=(session, 1)))
    quick = fetcher.begin(request(session=(session, 2)))
    fetcher.finish(quick)
    assert fetcher.finish(slow) == []
    assert slow.error == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert quick.error == ErrorCode.NONE


def test_used_sessions_keep_their_slots():
    fetcher = Fetcher(FetchSessions(2, random.Random(7)))
    fetcher.open(0)
    fetcher.open(0)
    context, answered_indexes = fetcher.ask(0)
    assert (context.session_id, answered_indexes) == (0, [0])


def test_unused_session_is_evicted_after_two_minutes():
    fetcher = Fetcher(FetchSessions(2, random.Random(7)))
    unused, used = fetcher.open(0), fetcher.open(0)
    fetcher.now_ms = EVICTION_MS
    fetcher.ask(session=(used, 1))
    assert fetcher.ask(0)[0].session_id == 0
    fetcher.now_ms = EVICTION_MS + 1
    assert fetcher.ask(0)[0].session_id != 0
    assert fetcher.ask(session=(unused, 1))[0].error == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert fetcher.ask(session=(used, 2))[0].error == ErrorCode.NONE


def test_old_session_is_evicted_for_a_larger_one():
    fetcher = Fetcher(FetchSessions(2, random.Random(7)))
    small, large = fetcher.open(0), fetcher.open(0, 1, 2)
    fetcher.now_ms = EVICTION_MS + 1
    fetcher.ask(session=(small, 1))
    fetcher.ask(session=(large, 1))
    assert fetcher.ask(0)[0].session_id == 0, "not larger than the smallest"
    assert fetcher.ask(0, 1)[0].session_id != 0
    assert fetcher.ask(session=(small, 2))[0].error == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert fetcher.ask(session=(large, 2))[0].error == ErrorCode.NONE


def test_without_slots_there_are_no_sessions():
    context, answered_indexes = Fetcher(FetchSessions(0, random.Random(7))).ask(0)
    assert (context.session_id, answered_indexes) == (0, [0])


class Connection:
    has_ended = False


def open_session(sessions: FetchSessions, size: int, owner: Connection) -> int:
    fetcher = Fetcher(sessions)
    fetcher.owner = owner
    context, _ = fetcher.ask(*range(size))
    return context.session_id


def test_total_session_size_is_bounded(monkeypatch):
    monkeypatch.setattr("wirebroker.request.fetch_sessions.MOST_PARTITIONS", 10)
    sessions = FetchSessions(100, random.Random(7))
    assert open_session(sessions, 4, Connection())
    assert open_session(sessions, 4, Connection())
    assert not open_session(sessions, 4, Connection())
    assert open_session(sessions, 2, Connection())
    assert sessions.partition_count == 10


def test_largest_session_is_evicted_for_a_smaller_one(monkeypatch):
    monkeypatch.setattr("wirebroker.request.fetch_sessions.MOST_PARTITIONS", 10)
    sessions = FetchSessions(100, random.Random(7))
    assert open_session(sessions, 2, Connection())
    assert open_session(sessions, 8, Connection())
    assert open_session(sessions, 3, Connection())
    assert sessions.partition_count == 5
    assert not open_session(sessions, 9, Connection())
    assert sessions.partition_count == 5


def test_consumers_and_followers_do_not_evict_each_others_sessions(monkeypatch):
    monkeypatch.setattr("wirebroker.request.fetch_sessions.MOST_PARTITIONS", 10)
    sessions = FetchSessions(100, random.Random(7))
    assert open_session(sessions, 10, Connection())
    follower = sessions.create(0, 9, uses_topic_ids=True, owner=Connection(), is_of_replica=True)
    assert follower is not None
    assert open_session(sessions, 4, Connection())
    assert len(sessions) == 2


def test_sessions_of_closed_connections_are_evicted_first(monkeypatch):
    monkeypatch.setattr("wirebroker.request.fetch_sessions.MOST_PARTITIONS", 10)
    sessions = FetchSessions(2, random.Random(7))
    first, second = Connection(), Connection()
    assert open_session(sessions, 8, first)
    assert open_session(sessions, 1, second)
    first.has_ended = True
    assert open_session(sessions, 9, Connection())
    second.has_ended = True
    assert open_session(sessions, 1, Connection())
    assert len(sessions) == 2


def test_session_growing_beyond_the_bound_ends(monkeypatch):
    monkeypatch.setattr("wirebroker.request.fetch_sessions.MOST_PARTITIONS", 10)
    sessions = FetchSessions(2, random.Random(7))
    fetcher = Fetcher(sessions)
    session = fetcher.open(*range(8))
    again, _ = fetcher.ask(0, 1, 2, session=(session, 1))
    assert again.error == ErrorCode.NONE
    context, _ = fetcher.ask(8, 9, 10, session=(session, 2))
    assert context.error == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert sessions.partition_count == 0


def with_name(fetch_request: FetchRequest, name: str) -> FetchRequest:
    return fetch_request._replace(
        topics=[topic._replace(name=name) for topic in fetch_request.topics]
    )


def test_too_long_topic_name_is_not_stored(fetcher):
    longest, too_long = "t" * 249, "t" * 250
    context = fetcher.begin(with_name(request(0), too_long))
    assert fetcher.finish(context) == [0]
    assert context.session_id == len(fetcher.sessions) == 0
    context = fetcher.begin(with_name(request(0), longest))
    fetcher.finish(context)
    assert context.session_id
    next_request = with_name(request(1, session=(context.session_id, 1)), too_long)
    assert fetcher.begin(next_request).error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert len(fetcher.sessions) == 0


@pytest.mark.parametrize("name", ["\u00e9", "\U0001f600" * 249])
def test_non_ascii_topic_name_opens_no_session(fetcher, name):
    context = fetcher.begin(with_name(request(0), name))
    assert fetcher.finish(context) == [0]
    assert context.session_id == len(fetcher.sessions) == 0
