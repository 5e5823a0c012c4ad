"""Requests of a share session, and what a member acknowledges."""

from __future__ import annotations

import pytest

from wirebroker.client.groups.share_session import (
    AcknowledgedBatch,
    AcknowledgeType,
    ShareSession,
    acknowledged_batches,
)

ORDERS, SALES = b"o" * 16, b"s" * 16
FIRST, SECOND, THIRD = (ORDERS, 0), (ORDERS, 1), (SALES, 0)
ACCEPT, RELEASE, REJECT = AcknowledgeType


@pytest.fixture
def session() -> ShareSession:
    return ShareSession("group", "member")


def topics_of(body):
    return {
        (topic["topic_id"], part["partition_index"]): [
            (batch["first_offset"], batch["last_offset"], batch["acknowledge_types"])
            for batch in part["acknowledgement_batches"]
        ]
        for topic in body["topics"]
        for part in topic["partitions"]
    }


def forgotten(body):
    return [
        (topic["topic_id"], partition)
        for topic in body["forgotten_topics_data"]
        for partition in topic["partitions"]
    ]


def test_first_request_opens_the_session_with_all_partitions(session):
    body = session.fetch_body([SECOND, THIRD, FIRST], 500)
    assert body["share_session_epoch"] == 0
    assert (body["group_id"], body["member_id"], body["max_wait_ms"]) == ("group", "member", 500)
    assert topics_of(body) == {FIRST: [], SECOND: [], THIRD: []}
    assert forgotten(body) == []
    assert not session.is_open
    session.advance()
    assert session.is_open


def test_later_requests_have_only_changes(session):
    session.fetch_body([FIRST, SECOND], 500)
    session.advance()
    body = session.fetch_body([FIRST, SECOND], 500)
    assert (body["share_session_epoch"], topics_of(body), forgotten(body)) == (1, {}, [])
    session.advance()
    body = session.fetch_body([SECOND, THIRD], 500)
    assert body["share_session_epoch"] == 2
    assert topics_of(body) == {THIRD: []}
    assert forgotten(body) == [FIRST]


def test_acknowledgements_go_with_the_next_request(session):
    session.fetch_body([FIRST, SECOND], 500)
    session.advance()
    session.acknowledge(FIRST, [AcknowledgedBatch(3, 5, [1])])
    session.acknowledge(FIRST, [AcknowledgedBatch(9, 9, [2])])
    session.acknowledge(SECOND, [])
    body = session.fetch_body([FIRST, SECOND], 500)
    assert topics_of(body) == {FIRST: [(3, 5, [1]), (9, 9, [2])]}
    session.advance()
    assert topics_of(session.fetch_body([FIRST, SECOND], 500)) == {}


def test_acknowledgements_of_a_lost_partition_are_sent_while_it_is_forgotten(session):
    session.fetch_body([FIRST, SECOND], 500)
    session.advance()
    session.acknowledge(FIRST, [AcknowledgedBatch(3, 5, [1])])
    body = session.fetch_body([SECOND], 500)
    assert topics_of(body) == {FIRST: [(3, 5, [1])]}
    assert forgotten(body) == [FIRST]


def test_closing_request_has_the_acknowledgements_that_have_no_response(session):
    session.fetch_body([FIRST], 500)
    session.advance()
    session.acknowledge(FIRST, [AcknowledgedBatch(0, 0, [3])])
    session.fetch_body([FIRST], 500)
    body = session.closing_body()
    assert body["share_session_epoch"] == -1
    assert topics_of(body) == {FIRST: [(0, 0, [3])]}


def test_lost_session_is_opened_again_without_acknowledgements(session):
    session.fetch_body([FIRST], 500)
    session.advance()
    session.acknowledge(FIRST, [AcknowledgedBatch(0, 0, [1])])
    session.reset()
    body = session.fetch_body([FIRST], 500)
    assert (body["share_session_epoch"], topics_of(body)) == (0, {FIRST: []})


def test_epoch_after_the_last_is_one(session):
    session._epoch = 2**31 - 1
    session.advance()
    assert session.fetch_body([], 500)["share_session_epoch"] == 1


@pytest.mark.parametrize(
    ("acquired", "types", "until", "expected"),
    [
        ([range(4)], dict.fromkeys(range(4), ACCEPT), 4, [(0, 3, [1])]),
        (
            [range(3)],
            {0: ACCEPT, 1: RELEASE, 2: REJECT},
            3,
            [(0, 2, [1, 2, 3])],
        ),
        ([range(4)], {0: ACCEPT, 2: ACCEPT}, 4, [(0, 3, [1, 0, 1, 0])]),
        ([range(2), range(7, 9)], {7: REJECT, 8: REJECT}, 9, [(0, 1, [0]), (7, 8, [3])]),
        ([range(4), range(6, 8)], {0: ACCEPT, 1: ACCEPT}, 2, [(0, 1, [1])]),
        ([range(4)], {}, 0, []),
    ],
    ids=["one type", "several types", "gaps", "two ranges", "first records", "nothing"],
)
def test_acquired_offsets_are_acknowledged_as_decided(acquired, types, until, expected):
    assert [tuple(batch) for batch in acknowledged_batches(acquired, types, until)] == expected
