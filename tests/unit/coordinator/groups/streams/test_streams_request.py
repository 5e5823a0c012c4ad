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
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.groups.streams.request_bounds import check_bounds
from wirebroker.coordinator.groups.streams.streams_request import (
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
        task_offsets=[SimpleNamespace(subtopology_id="00")] * 2,
        task_end_offsets=None,
        topology=topology(
            subtopology("0", "t", sinks=["rr"], changelogs=[internal("log", a="bb")])
        ),
    )
    of_topology = len("0" + "t" + "rr" + "log" + "abb")
    expected = len("mm" + "r" + "p" + "kvv" + "host") + 2 * (100 + len("00")) + of_topology
    assert StreamsHeartbeat(body, 1, "", "").size_bytes == expected


def test_valid_topics():
    assert has_valid_topics(COUNTS)
    assert not has_valid_topics(topology(subtopology("0", "a b")))


# A function of the elements beyond the largest value of a field, and the error's text.
MANY_TOPICS = [f"t{number}" for number in range(2_000)]
BOUNDS = {
    "subtopologies": (
        lambda more: {
            "topology": topology(*(subtopology(str(number)) for number in range(500 + more)))
        },
        "A topology can have at most 500 subtopologies.",
    ),
    "topics": (
        lambda more: {"topology": topology(subtopology("0", *MANY_TOPICS, *["u"] * more))},
        "A topology can have at most 2000 topics.",
    ),
    "copartition groups": (
        lambda more: {
            "topology": topology(subtopology("0", "t", copartition=[([], [])] * (4_000 + more)))
        },
        "A topology can have at most 4000 topics in copartition groups.",
    ),
    "copartitioned topics": (
        lambda more: {
            "topology": topology(subtopology("0", "t", copartition=[([0] * (3_999 + more), [])]))
        },
        "A topology can have at most 4000 topics in copartition groups.",
    ),
    "configs": (
        lambda more: {
            "topology": topology(
                subtopology(
                    "0",
                    "t",
                    changelogs=[SimpleNamespace(topic_configs=[None] * (8_000 + more))],
                )
            )
        },
        "A topology can have at most 8000 configs of topics.",
    ),
    "subtopology id": (
        lambda more: {"topology": topology(subtopology("s" * (255 + more), "t"))},
        "Subtopology ids can have at most 255 characters.",
    ),
    "tasks": (
        lambda more: {"active_tasks": [SimpleNamespace(partitions=range(99_999 + more))]},
        "A member can report at most 100000 tasks.",
    ),
    "entries of tasks": (
        lambda more: {"standby_tasks": [SimpleNamespace(partitions=())] * (100_000 + more)},
        "A member can report at most 100000 tasks.",
    ),
    "offsets": (
        lambda more: {"task_offsets": [SimpleNamespace(subtopology_id="0")] * (20_000 + more)},
        "A member can report at most 20000 task offsets.",
    ),
    "ids of offsets": (
        lambda more: {"task_end_offsets": [SimpleNamespace(subtopology_id="s" * (255 + more))]},
        "Subtopology ids can have at most 255 characters.",
    ),
    "client tags": (
        lambda more: {"client_tags": [None] * (100 + more)},
        "A member can have at most 100 client tags.",
    ),
    "member id": (
        lambda more: {"member_id": "m" * (255 + more)},
        "Member ids can have at most 255 characters.",
    ),
    "process id": (
        lambda more: {"process_id": "p" * (255 + more)},
        "Process ids can have at most 255 characters.",
    ),
    "host": (
        lambda more: {"user_endpoint": SimpleNamespace(host="h" * (255 + more))},
        "Hosts of endpoints can have at most 255 characters.",
    ),
}
EMPTY = {
    "member_id": "m",
    "process_id": None,
    "user_endpoint": None,
    "client_tags": None,
    "active_tasks": None,
    "standby_tasks": None,
    "warmup_tasks": None,
    "task_offsets": None,
    "task_end_offsets": None,
    "topology": None,
}


@pytest.mark.parametrize("field", BOUNDS)
def test_the_size_of_each_field_is_bounded(field):
    fields, text = BOUNDS[field]
    check_bounds(SimpleNamespace(**EMPTY | fields(0)))
    with pytest.raises(KafkaError) as refused:
        check_bounds(SimpleNamespace(**EMPTY | fields(1)))
    assert refused.value.code is INVALID
    assert refused.value.message == text
