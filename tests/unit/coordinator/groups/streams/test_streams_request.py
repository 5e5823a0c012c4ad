"""Checks of a StreamsGroupHeartbeat request that need no group."""

from types import SimpleNamespace

import pytest

from tests.support.coordinators.streams_kit import (
    COUNTS,
    StreamsGroups,
    internal,
    subtopology,
    topology,
)
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.groups.streams.streams_request import (
    MOST_TOPICS,
    StreamsHeartbeat,
    has_valid_topics,
)

INVALID = ErrorCode.INVALID_REQUEST
TOPOLOGY = ErrorCode.STREAMS_INVALID_TOPOLOGY


@pytest.mark.parametrize(
    ("fields", "code", "text"),
    [
        ({"group_id": " "}, INVALID, "GroupId can't be empty."),
        ({"instance": ""}, INVALID, "InstanceId can't be empty."),
        ({"rack": ""}, INVALID, "RackId can't be empty."),
        ({"rebalance_ms": -1}, INVALID, "RebalanceTimeoutMs must be provided in first request."),
        ({"active": {"0": [1]}}, INVALID, "ActiveTasks must be empty when (re-)joining."),
        ({"standby": {"0": [1]}}, INVALID, "StandbyTasks must be empty when (re-)joining."),
        ({"topology": None}, INVALID, "Topology must be non-null when (re-)joining."),
        (
            {"topology": topology(subtopology("0", *map(str, range(MOST_TOPICS + 1))))},
            INVALID,
            "A topology can have at most 4000 topics.",
        ),
        (
            {"topology": topology(subtopology("0", "t", changelogs=[internal("c", 3)]))},
            TOPOLOGY,
            "Changelog topic c must have an undefined partition count, but it is set to 3.",
        ),
        (
            {"topology": topology(subtopology("0", "t", sinks=["__consumer_offsets"]))},
            TOPOLOGY,
            "Use of Kafka internal topics __consumer_offsets in a Kafka Streams topology is "
            "prohibited.",
        ),
        (
            {"topology": topology(subtopology("0", "a b", ".."))},
            TOPOLOGY,
            "Topic names a b,.. are not valid topic names.",
        ),
    ],
)
def test_joins_are_checked(fields, code, text):
    answer = StreamsGroups().enter("a", **fields)
    assert answer == {"error_code": code, "error_message": text}


@pytest.mark.parametrize(
    ("epoch", "fields", "text"),
    [
        (-2, {}, "InstanceId can't be null."),
        (-3, {}, "MemberEpoch is -3, but must be greater than or equal to -2."),
        (1, {"topology": COUNTS}, "Topology can only be provided when (re-)joining."),
    ],
)
def test_other_requests_are_checked(epoch, fields, text):
    answer = StreamsGroups().beat("a", epoch, **fields)
    assert answer == {"error_code": INVALID, "error_message": text}


def test_size_counts_texts_and_offsets():
    body = SimpleNamespace(
        member_id="mm",
        instance_id=None,
        rack_id="r",
        process_id="p",
        client_tags=[SimpleNamespace(key="k", value="vv")],
        user_endpoint=SimpleNamespace(host="host", port=1),
        task_offsets=[None, None],
        task_end_offsets=None,
        topology=topology(
            subtopology("0", "t", sinks=["rr"], changelogs=[internal("log", a="bb")])
        ),
    )
    of_topology = len("t" + "rr" + "log" + "abb")
    expected = len("mm" + "r" + "p" + "kvv" + "host") + 2 * 100 + of_topology
    assert StreamsHeartbeat(body, 1, "", "").size_bytes == expected


def test_valid_topics():
    assert has_valid_topics(COUNTS)
    assert not has_valid_topics(topology(subtopology("0", "a b")))
