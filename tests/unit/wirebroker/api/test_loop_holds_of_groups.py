"""Limits the work of each turn for the largest requests of group members (see test_loop_holds.py).

Each request has one field at its largest: as many elements as a member may have, more than that, or
a long text.
"""

from __future__ import annotations

import importlib
import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.support.brokers.servers import broker_of
from tests.support.harness.request_sizes import EIGHTH, LARGEST, RequestSizes
from tests.support.protocol.raw_client import answer_of, request_frame
from tests.support.tools.waiting import eventually, until
from tests.unit.wirebroker.api.loop_holds_kit import (
    MANY_TOPICS,
    PATIENCE_S,
    garbage,
    is_measured,
    new_topic,
    watched_broker,
)
from wirebroker.api.groups.member_memory import MOST_METADATA_BYTES
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.replica.leadership import Leadership, LeadershipChange

if TYPE_CHECKING:
    from collections.abc import Callable

# Fixtures for the whole module.
__all__ = ["garbage", "is_measured"]

SMALL_TOPICS = 4_000
LONGEST_TEXT = 32_767
UPGRADE = 1
LEAVE, LEAVE_STATIC = -1, -2
VERSION = 1
Fields = dict[str, Any]


@pytest.fixture(scope="module")
def broker(tmp_path_factory, garbage, is_measured):
    directory = tmp_path_factory.mktemp("data")
    # Brokers import them with their first large group and their first share group, in one turn.
    importlib.import_module("wirebroker.coordination.group_effects")
    importlib.import_module("wirebroker.broker.share_opening")
    sizes = LARGEST if is_measured else EIGHTH
    with watched_broker(directory, garbage, sizes, is_measured=is_measured) as watched:
        watched.create([new_topic("big", sizes.of(9_000))])
        watched.create([new_topic("wide", sizes.of(1_000))])
        names = numbered("t", sizes.of(SMALL_TOPICS))
        at_once = sizes.of(MANY_TOPICS)
        for start in range(0, len(names), at_once):
            watched.create([new_topic(name, 1) for name in names[start : start + at_once]])
        watched.create([new_topic("__consumer_offsets", 1, cleanup_policy="compact")])
        enable_share_groups(watched.client)
        eventually(lambda: is_served(watched.client))
        # So many new objects would be examined once, in a turn of a test.
        garbage.keep_all()
        yield watched


def enable_share_groups(client):
    updates = [{"feature": "share.version", "max_version_level": 2, "upgrade_type": UPGRADE}]
    body = {"timeout_ms": 10_000, "feature_updates": updates}
    assert client.ask(ApiKey.UPDATE_FEATURES, 2, body).error_code == 0


def is_served(client) -> bool:
    body = {"key_type": 0, "coordinator_keys": ["g"]}
    (coordinator,) = client.ask(ApiKey.FIND_COORDINATOR, 4, body).coordinators
    return coordinator.error_code == 0


GROUPS = (f"g{number}" for number in itertools.count())


# -- the heartbeats with usual fields ------------------------------------------------------------


def consumer(**fields: Any) -> Fields:
    return {
        "group_id": next(GROUPS),
        "member_id": "m",
        "member_epoch": 0,
        "rebalance_timeout_ms": 60_000,
        "subscribed_topic_names": ["t0"],
        "topic_partitions": [],
        **fields,
    }


def share(**fields: Any) -> Fields:
    return {
        "group_id": next(GROUPS),
        "member_id": "m",
        "member_epoch": 0,
        "subscribed_topic_names": ["t0"],
        **fields,
    }


def streams(*subtopologies: Fields, **fields: Any) -> Fields:
    return {
        "group_id": next(GROUPS),
        "member_id": "m",
        "member_epoch": 0,
        "endpoint_information_epoch": 0,
        "rebalance_timeout_ms": 60_000,
        "process_id": "p",
        "topology": {"epoch": 1, "subtopologies": list(subtopologies) or [subtopology("0", "t0")]},
        "active_tasks": [],
        "standby_tasks": [],
        "warmup_tasks": [],
        **fields,
    }


def subtopology(subtopology_id: str, *sources: str, **fields: Any) -> Fields:
    return {
        "subtopology_id": subtopology_id,
        "source_topics": list(sources),
        "source_topic_regex": [],
        "state_changelog_topics": [],
        "repartition_sink_topics": [],
        "repartition_source_topics": [],
        "copartition_groups": [],
        **fields,
    }


def topic(name: str, partitions: int = 0, configs: int = 0) -> Fields:
    return {
        "name": name,
        "partitions": partitions,
        "replication_factor": 1,
        "topic_configs": [{"key": f"k{number}", "value": "v"} for number in range(configs)],
    }


def copartition(sources: list[int], repartition: list[int]) -> Fields:
    return {
        "source_topics": sources,
        "source_topic_regex": [],
        "repartition_source_topics": repartition,
    }


# -- the largest fields --------------------------------------------------------------------------


def text(length: int = LONGEST_TEXT) -> str:
    return "x" * length


def numbered(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


def chain(sizes: RequestSizes) -> Fields:
    """Return repartition topics, each the sink of the one before, in the worst order."""
    count = sizes.of(500) - 1
    links = [
        subtopology(
            f"s{number:04}",
            *(() if number else ("t0",)),
            repartition_sink_topics=[f"r{number + 1}"],
            repartition_source_topics=[topic(f"r{number}")] if number else [],
        )
        for number in range(count)
    ]
    end = subtopology("end", repartition_source_topics=[topic(f"r{count}")])
    return streams(*reversed(links), end)


def copartitioned(sizes: RequestSizes, members: int) -> Fields:
    """Return as many copartition groups of so many topics as there may be."""
    topics = sizes.of(950)
    chosen = list(range(min(members, topics)))
    count = sizes.of(4_000) // (len(chosen) + 1)
    names = numbered("r", topics)
    return streams(
        subtopology(
            "0",
            "t0",
            repartition_sink_topics=names,
            repartition_source_topics=list(map(topic, names)),
            copartition_groups=[copartition([], chosen)] * count,
        )
    )


class Row(NamedTuple):
    """A request whose field is at its largest, and the error that it gets."""

    key: ApiKey
    make: Callable[[RequestSizes], Fields]
    error: ErrorCode = ErrorCode.NONE


CONSUMER = ApiKey.CONSUMER_GROUP_HEARTBEAT
SHARE = ApiKey.SHARE_GROUP_HEARTBEAT
STREAMS = ApiKey.STREAMS_GROUP_HEARTBEAT
DESCRIPTIONS = {
    CONSUMER: ApiKey.CONSUMER_GROUP_DESCRIBE,
    SHARE: ApiKey.SHARE_GROUP_DESCRIBE,
    STREAMS: ApiKey.STREAMS_GROUP_DESCRIBE,
}
INVALID = ErrorCode.INVALID_REQUEST
UNKNOWN_GROUP = ErrorCode.GROUP_ID_NOT_FOUND
# More elements than any field may have, and fewer than close the connection.
ELEMENTS = 400_000


def offsets(count: int, subtopology_id: str = "0") -> list[Fields]:
    return [
        {"subtopology_id": subtopology_id, "partition": number, "offset": 1}
        for number in range(count)
    ]


def tasks(count: int) -> list[Fields]:
    return [{"subtopology_id": f"s{number}", "partitions": [0]} for number in range(count)]


def staying(**fields: Any) -> Fields:
    """Return the heartbeat of a member that has joined, of the group of the module's broker."""
    return streams(**{"member_epoch": 1, "topology": None, **fields})


ROWS: dict[str, Row] = {
    "consumer member id": Row(CONSUMER, lambda _: consumer(member_id=text())),
    "consumer instance id": Row(CONSUMER, lambda _: consumer(instance_id=text())),
    "consumer rack": Row(CONSUMER, lambda _: consumer(rack_id=text())),
    "consumer assignor": Row(
        CONSUMER, lambda _: consumer(server_assignor=text()), ErrorCode.UNSUPPORTED_ASSIGNOR
    ),
    "consumer regular expression": Row(
        CONSUMER,
        lambda _: consumer(subscribed_topic_regex=text()),
        ErrorCode.INVALID_REGULAR_EXPRESSION,
    ),
    "consumer topics": Row(
        CONSUMER,
        lambda sizes: consumer(subscribed_topic_names=numbered("t", sizes.of(SMALL_TOPICS))),
    ),
    "consumer static member": Row(
        CONSUMER,
        lambda sizes: consumer(
            instance_id="i", subscribed_topic_names=numbered("t", sizes.of(SMALL_TOPICS))
        ),
    ),
    "consumer wide topics": Row(
        CONSUMER, lambda _: consumer(subscribed_topic_names=["big", "wide"])
    ),
    "consumer unknown topics": Row(
        CONSUMER, lambda sizes: consumer(subscribed_topic_names=numbered("u", sizes.of(15_000)))
    ),
    "consumer topics beyond the bound": Row(
        CONSUMER,
        lambda _: consumer(subscribed_topic_names=numbered("t", 25_000)),
        INVALID,
    ),
    "consumer partitions": Row(
        CONSUMER,
        lambda sizes: consumer(
            member_epoch=1,
            topic_partitions=[{"topic_id": bytes(16), "partitions": list(range(ELEMENTS))}],
        ),
        INVALID,
    ),
    "share member id": Row(SHARE, lambda _: share(member_id=text()), INVALID),
    "share rack": Row(SHARE, lambda _: share(rack_id=text())),
    "share topics": Row(
        SHARE, lambda sizes: share(subscribed_topic_names=numbered("t", sizes.of(2_500)))
    ),
    "share wide topics": Row(SHARE, lambda _: share(subscribed_topic_names=["big", "wide"])),
    "share one topic repeated": Row(
        SHARE, lambda sizes: share(subscribed_topic_names=["t0"] * sizes.of(2_500))
    ),
    "share topics beyond the bound": Row(
        SHARE, lambda _: share(subscribed_topic_names=numbered("t", ELEMENTS)), INVALID
    ),
    "streams member id": Row(STREAMS, lambda _: streams(member_id=text()), INVALID),
    "streams instance id": Row(STREAMS, lambda _: streams(instance_id=text())),
    "streams rack": Row(STREAMS, lambda _: streams(rack_id=text())),
    "streams process id": Row(STREAMS, lambda _: streams(process_id=text()), INVALID),
    "streams host": Row(
        STREAMS, lambda _: streams(user_endpoint={"host": text(), "port": 1}), INVALID
    ),
    "streams tags": Row(
        STREAMS,
        lambda _: streams(
            client_tags=[{"key": f"k{number}", "value": "v"} for number in range(ELEMENTS)]
        ),
        INVALID,
    ),
    "streams offsets": Row(STREAMS, lambda sizes: streams(task_offsets=offsets(sizes.of(20_000)))),
    "streams end offsets": Row(
        STREAMS, lambda sizes: streams(task_end_offsets=offsets(sizes.of(11_000), text(255)))
    ),
    "streams offsets beyond the bound": Row(
        STREAMS, lambda _: streams(task_offsets=offsets(ELEMENTS)), INVALID
    ),
    "streams tasks": Row(
        STREAMS,
        lambda sizes: staying(active_tasks=tasks(sizes.of(50_000))),
        UNKNOWN_GROUP,
    ),
    "streams tasks beyond the bound": Row(
        STREAMS, lambda _: staying(active_tasks=tasks(ELEMENTS // 2)), INVALID
    ),
    "streams chain of subtopologies": Row(STREAMS, chain),
    "streams source topics": Row(
        STREAMS, lambda sizes: streams(subtopology("0", *numbered("t", sizes.of(2_000))))
    ),
    "streams subtopologies of a wide topic": Row(
        STREAMS,
        lambda sizes: streams(*(subtopology(name, "wide") for name in numbered("s", sizes.of(80)))),
    ),
    "streams subtopology ids": Row(
        STREAMS,
        lambda sizes: streams(
            *(subtopology(f"{number:03}{text(252)}", "t0") for number in range(sizes.of(500)))
        ),
    ),
    "streams subtopologies beyond the bound": Row(
        STREAMS,
        lambda _: streams(*(subtopology(name, "t0") for name in numbered("s", 20_000))),
        INVALID,
    ),
    "streams changelogs": Row(
        STREAMS,
        lambda sizes: streams(
            subtopology(
                "0",
                "t0",
                state_changelog_topics=[topic(name) for name in numbered("c", sizes.of(1_999))],
            )
        ),
    ),
    "streams configs": Row(
        STREAMS,
        lambda sizes: streams(
            subtopology(
                "0",
                "t0",
                state_changelog_topics=[
                    topic(name, 0, 4) for name in numbered("d", sizes.of(1_999))
                ],
            )
        ),
    ),
    "streams configs beyond the bound": Row(
        STREAMS,
        lambda _: streams(subtopology("0", "t0", state_changelog_topics=[topic("c", 0, ELEMENTS)])),
        INVALID,
    ),
    "streams copartition groups": Row(STREAMS, lambda sizes: copartitioned(sizes, 2)),
    "streams topics in copartition groups": Row(
        STREAMS, lambda sizes: copartitioned(sizes, SMALL_TOPICS)
    ),
    "streams copartition groups beyond the bound": Row(
        STREAMS,
        lambda _: streams(
            subtopology("0", "t0", copartition_groups=[copartition([0], [])] * 90_000)
        ),
        INVALID,
    ),
    "streams regular expressions": Row(
        STREAMS,
        lambda _: streams(subtopology("0", "t0", source_topic_regex=["t.*"] * ELEMENTS)),
        INVALID,
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_the_largest_heartbeats_and_the_memory_that_they_leave(broker, name):
    row = ROWS[name]
    body = row.make(broker.sizes)
    frame = request_frame(row.key, VERSION, body)
    answers: list[bytes] = []
    broker.assert_short(lambda: answers.append(broker.client.exchange(frame)))
    answer = answer_of(row.key, VERSION, answers[-1])
    assert (ErrorCode(answer.error_code), answer.error_message and "") in {
        (row.error, None),
        (row.error, ""),
    }
    shard = broker_of(broker.server.server).groups.shard_of("g")
    assert shard is not None
    group = shard.groups.get(body["group_id"])
    if row.error is ErrorCode.NONE:
        # Each member may have so much, and all together 16 times that.
        assert group is not None
        assert 0 < group.metadata_bytes <= MOST_METADATA_BYTES
        # The next heartbeat, with the assignment that was computed meanwhile.
        staying = {"group_id": body["group_id"], "member_id": answer.member_id}
        if row.key is STREAMS:
            staying["endpoint_information_epoch"] = 0
        assert_next_is_short(broker, row.key, staying, answer)
        assert_description_is_short(broker, row.key, staying["group_id"])
        assert_leaving_is_short(broker, row.key, staying, body)
    else:
        assert group is None


def assert_next_is_short(broker, key, body, joined):
    """Let the member beat again; the response comes after short turns."""
    answer = asked(broker, key, {**body, "member_epoch": joined.member_epoch})
    assert answer.error_code in {0, ErrorCode.FENCED_MEMBER_EPOCH}


def assert_description_is_short(broker, key, group_id):
    body = {"group_ids": [group_id], "include_authorized_operations": False}
    frame = request_frame(DESCRIPTIONS[key], VERSION, body)
    answers: list[bytes] = []
    broker.assert_short(lambda: answers.append(broker.client.exchange(frame)))
    (group,) = answer_of(DESCRIPTIONS[key], VERSION, answers[-1]).groups
    assert group.error_code == 0
    assert len(group.members) == 1


def assert_leaving_is_short(broker, key, body, joining):
    """Let the member leave; a static one leaves for a while and returns before."""
    instance_id = joining.get("instance_id")
    if instance_id is not None and key is CONSUMER:
        away = {**body, "instance_id": instance_id, "member_epoch": LEAVE_STATIC}
        assert asked(broker, key, away).error_code == 0
        body = {**body, "member_id": f"{body['member_id']}2", "instance_id": instance_id}
        assert asked(broker, key, {**joining, **body}).error_code == 0
    leaving = {**body, "member_epoch": LEAVE, "instance_id": instance_id}
    if key is SHARE:
        del leaving["instance_id"]
    assert asked(broker, key, leaving).error_code == 0


def asked(broker, key, body):
    frame = request_frame(key, VERSION, body)
    answers: list[bytes] = []
    broker.assert_short(lambda: answers.append(broker.client.exchange(frame)))
    return answer_of(key, VERSION, answers[-1])


def test_loading_large_groups(broker):
    names = numbered("t", broker.sizes.of(SMALL_TOPICS))
    members = [
        (CONSUMER, consumer(subscribed_topic_names=names)),
        (SHARE, share(subscribed_topic_names=numbered("t", broker.sizes.of(2_500)))),
        (STREAMS, streams(subtopology("0", *numbered("t", broker.sizes.of(2_000))))),
    ]
    for key, body in members:
        joined = asked(broker, key, body)
        assert joined.error_code == 0
        staying = {"group_id": body["group_id"], "member_id": "m"}
        if key is STREAMS:
            staying["endpoint_information_epoch"] = 0
        assert_next_is_short(broker, key, staying, joined)
    groups = broker_of(broker.server.server).groups
    before = groups.shard_of("g")
    broker.assert_short(lambda: broker.server.call(load_again(groups)))
    after = groups.shard_of("g")
    assert after is not None
    assert before is not None
    assert after is not before
    assert after.groups.keys() == before.groups.keys()


async def load_again(groups):
    """Resign from all partitions, and lead them again in the same epoch."""
    partitions = groups._partitions
    logs = [term.log for term in partitions._terms.values()]
    led = [Leadership(log.partition, log.leader_epoch) for log in logs]
    partitions.follow(LeadershipChange(resigned=led))
    partitions.follow(LeadershipChange(elected=led))
    await until(lambda: not partitions.is_loading, timeout_s=PATIENCE_S)
