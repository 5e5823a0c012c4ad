"""Requests with very many resources: authorized in steps, logged in few lines."""

from __future__ import annotations

import asyncio
import logging
from types import GeneratorType
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.brokers.servers import broker_of, client_of, running
from tests.support.protocol.requests import create_topic, produce_request
from tests.support.records.batches import batch
from wirebroker.api.data.produce import DENIED_AT_ONCE
from wirebroker.authorization.access import Authorization
from wirebroker.authorization.authorizer import StandardAuthorizer
from wirebroker.authorization.broker_rules import BROKER_RULES
from wirebroker.authorization.controller_rules import rule_on
from wirebroker.authorization.ruling import STEP, CheckedRequest, Rule, Ruling
from wirebroker.base.clock import Slices, in_one_go, next_turn
from wirebroker.codecs.acls import DENY, EVERYBODY, LITERAL, PREFIXED, Operation, Resource
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.envelope import Principal
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.messages import decode_request, encode_request
from wirebroker.config import Config
from wirebroker.config.rows.authorizer import STANDARD
from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
from wirebroker.coordinator.controller.requests.request import ControllerRequest

if TYPE_CHECKING:
    from pathlib import Path

    from wirebroker.base.clock import Steps

MANY = 20 * STEP
NAMES = [f"t{number}" for number in range(MANY)]
TOPICS: list[dict[str, Any]] = [{"name": name, "partitions": []} for name in NAMES]
OPEN = {"authorizer.class.name": STANDARD, "allow.everyone.if.no.acl.found": "true"}
DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED

LONG: dict[ApiKey, tuple[int, dict[str, Any]]] = {
    ApiKey.LIST_OFFSETS: (7, {"replica_id": -1, "topics": TOPICS}),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (
        4,
        {"topics": [{"topic": name, "partitions": []} for name in NAMES]},
    ),
    ApiKey.DELETE_RECORDS: (2, {"topics": TOPICS, "timeout_ms": 1}),
    ApiKey.DESCRIBE_PRODUCERS: (
        0,
        {"topics": [{"name": name, "partition_indexes": []} for name in NAMES]},
    ),
    ApiKey.FIND_COORDINATOR: (4, {"key_type": 0, "coordinator_keys": NAMES}),
    ApiKey.DESCRIBE_GROUPS: (5, {"groups": NAMES}),
    ApiKey.DELETE_GROUPS: (2, {"groups_names": NAMES}),
    ApiKey.OFFSET_FETCH: (
        8,
        {"groups": [{"group_id": name, "topics": []} for name in NAMES]},
    ),
    ApiKey.ALTER_REPLICA_LOG_DIRS: (
        2,
        {"dirs": [{"path": "/a", "topics": [{"name": "t0", "partitions": range(MANY)}]}]},
    ),
    ApiKey.DESCRIBE_TRANSACTIONS: (0, {"transactional_ids": NAMES}),
}
# One topic with very many partitions, each of which is refused in the response.
WIDE: dict[ApiKey, tuple[int, dict[str, Any]]] = {
    ApiKey.LIST_OFFSETS: (
        7,
        {
            "replica_id": -1,
            "topics": [
                {"name": "t0", "partitions": [{"partition_index": each} for each in range(MANY)]}
            ],
        },
    ),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (
        4,
        {"topics": [{"topic": "t0", "partitions": [{"partition": each} for each in range(MANY)]}]},
    ),
    ApiKey.DELETE_RECORDS: (
        2,
        {
            "topics": [
                {"name": "t0", "partitions": [{"partition_index": each} for each in range(MANY)]}
            ],
            "timeout_ms": 1,
        },
    ),
    ApiKey.DESCRIBE_PRODUCERS: (
        0,
        {"topics": [{"name": "t0", "partition_indexes": range(MANY)}]},
    ),
}
PARTITIONS = [{"partition_index": each} for each in range(MANY)]
WIDE |= {
    ApiKey.OFFSET_COMMIT: (8, {"topics": [{"name": "t0", "partitions": PARTITIONS}]}),
    ApiKey.OFFSET_FETCH: (1, {"topics": [{"name": "t0", "partition_indexes": range(MANY)}]}),
    ApiKey.TXN_OFFSET_COMMIT: (3, {"topics": [{"name": "t0", "partitions": PARTITIONS}]}),
    ApiKey.ADD_PARTITIONS_TO_TXN: (
        3,
        {"v3_and_below_topics": [{"name": "t0", "partitions": range(MANY)}]},
    ),
    ApiKey.WRITE_TXN_MARKERS: (
        1,
        {"markers": [{"topics": [{"name": "t0", "partition_indexes": range(MANY)}]}]},
    ),
}
LONG_OF_CONTROLLER: dict[ApiKey, tuple[int, dict[str, Any]]] = {
    ApiKey.CREATE_TOPICS: (
        7,
        {
            "topics": [
                {"name": name, "num_partitions": 1, "replication_factor": 1} for name in NAMES
            ],
            "timeout_ms": 1,
        },
    ),
    ApiKey.DELETE_TOPICS: (6, {"topics": [{"name": name} for name in NAMES], "timeout_ms": 1}),
    ApiKey.CREATE_PARTITIONS: (
        3,
        {"topics": [{"name": name, "count": 2} for name in NAMES], "timeout_ms": 1},
    ),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (
        1,
        {
            "resources": [
                {"resource_type": 2, "resource_name": name, "configs": []} for name in NAMES
            ]
        },
    ),
}


# Filters of responses with very many elements: the request and its handler's response.
ANSWERS: dict[ApiKey, tuple[int, dict[str, Any], dict[str, Any]]] = {
    ApiKey.FIND_COORDINATOR: (*LONG[ApiKey.FIND_COORDINATOR], {"coordinators": []}),
    ApiKey.LIST_GROUPS: (4, {}, {"groups": [{"group_id": name} for name in NAMES]}),
    ApiKey.LIST_TRANSACTIONS: (
        0,
        {"state_filters": [], "producer_id_filters": []},
        {"transaction_states": [{"transactional_id": name} for name in NAMES]},
    ),
    ApiKey.OFFSET_FETCH: (*LONG[ApiKey.OFFSET_FETCH], {"groups": []}),
    ApiKey.DESCRIBE_TRANSACTIONS: (*LONG[ApiKey.DESCRIBE_TRANSACTIONS], {"transaction_states": []}),
}
OPEN_ANSWERS: dict[ApiKey, tuple[int, dict[str, Any], dict[str, Any]]] = {
    ApiKey.DESCRIBE_GROUPS: (
        *LONG[ApiKey.DESCRIBE_GROUPS],
        {"groups": [{"group_id": name} for name in NAMES]},
    ),
    ApiKey.OFFSET_FETCH: (
        8,
        {"groups": [{"group_id": "g", "topics": None}]},
        {"groups": [{"group_id": "g", "topics": [{"name": name} for name in NAMES]}]},
    ),
    ApiKey.DESCRIBE_TRANSACTIONS: (
        0,
        {"transactional_ids": ["t"]},
        {"transaction_states": [{"topics": [{"topic": name} for name in NAMES]}]},
    ),
}


def asked(
    key: ApiKey, version: int, body: dict[str, Any], *, is_open: bool = False
) -> CheckedRequest:
    settings = OPEN if is_open else {"authorizer.class.name": STANDARD}
    standard = StandardAuthorizer.configured(Config(settings))
    authorization = Authorization(standard, standard)
    access = authorization.access_for(Principal("User", "nobody"), "127.0.0.1", key)
    data = memoryview(bytearray(encode_request(key, version, body)))
    return CheckedRequest(access, ClusterImage(), version, decode_request(key, version, data, 0))


def steps_of(rule: Rule, request: CheckedRequest) -> int:
    ruling = rule(request)
    assert isinstance(ruling, GeneratorType)
    return count_steps(ruling)


def count_steps(ruling: Steps[Any]) -> int:
    count = 0
    while True:
        try:
            next(ruling)
        except StopIteration:
            return count
        count += 1


@pytest.mark.parametrize("key", LONG, ids=lambda key: key.name)
def test_rule_for_many_resources_runs_in_steps(key: ApiKey) -> None:
    version, body = LONG[key]
    assert steps_of(BROKER_RULES[key], asked(key, version, body)) >= MANY // STEP


@pytest.mark.parametrize("key", WIDE, ids=lambda key: key.name)
def test_rule_for_many_partitions_of_a_topic_runs_in_steps(key: ApiKey) -> None:
    version, body = WIDE[key]
    assert steps_of(BROKER_RULES[key], asked(key, version, body)) >= MANY // STEP


@pytest.mark.parametrize("key", LONG_OF_CONTROLLER, ids=lambda key: key.name)
def test_controller_rule_for_many_resources_runs_in_steps(key: ApiKey) -> None:
    request = asked(key, *LONG_OF_CONTROLLER[key])
    controller_request = ControllerRequest(key, request.version, request.body)
    assert (
        steps_of(lambda checked_request: rule_on(controller_request, checked_request), request)
        >= MANY // STEP
    )


@pytest.mark.parametrize("key", [ApiKey.DESCRIBE_GROUPS, ApiKey.DELETE_GROUPS])
def test_denied_groups_are_added_to_the_response_in_steps(key: ApiKey) -> None:
    assert steps_of(BROKER_RULES[key], asked(key, *LONG[key])) >= 2 * MANY // STEP


@pytest.mark.parametrize("key", [ApiKey.CREATE_TOPICS, ApiKey.CREATE_PARTITIONS])
def test_denied_topics_are_added_to_the_controller_response_in_steps(key: ApiKey) -> None:
    request = asked(key, *LONG_OF_CONTROLLER[key])
    controller_request = ControllerRequest(key, request.version, request.body)
    assert (
        steps_of(lambda checked_request: rule_on(controller_request, checked_request), request)
        >= 2 * MANY // STEP
    )


@pytest.mark.parametrize("key", ANSWERS, ids=lambda key: key.name)
def test_denied_entries_are_merged_into_the_response_in_steps(key: ApiKey) -> None:
    assert_merged_in_steps(key, *ANSWERS[key], is_open=False)


@pytest.mark.parametrize("key", OPEN_ANSWERS, ids=lambda key: key.name)
def test_response_entries_are_authorized_in_steps(key: ApiKey) -> None:
    assert_merged_in_steps(key, *OPEN_ANSWERS[key], is_open=True)


def assert_merged_in_steps(
    key: ApiKey, version: int, body: dict[str, Any], answer: dict[str, Any], *, is_open: bool
) -> None:
    ruling = BROKER_RULES[key](asked(key, version, body, is_open=is_open))
    if not isinstance(ruling, Ruling):
        ruling = in_one_go(ruling)
    assert count_steps(ruling.merged(answer)) >= MANY // STEP


async def test_produce_to_many_topics_is_authorized_in_slices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Slices, "SECONDS", 0.0)
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            await next_turn()
            turns += 1

    async with running(tmp_path, settings=OPEN) as server, client_of(server) as client:
        await create_topic(client, "t0")
        denying = rule(Operation.WRITE, Resource.TOPIC, "t") | {"resource_pattern_type": PREFIXED}
        await client.ask(ApiKey.CREATE_ACLS, 3, {"creations": [denying]})
        request = produce_request({(name, 0): batch(b"value") for name in (*NAMES, "other")})
        counting = asyncio.create_task(count_turns())
        answer = await client.ask(ApiKey.PRODUCE, 9, request)
        counting.cancel()
        assert turns >= MANY // DENIED_AT_ONCE
        *denied, other = answer.responses
        assert [topic.name for topic in denied] == NAMES
        assert {topic.partition_responses[0].error_code for topic in denied} == {DENIED}
        assert (other.name, other.partition_responses[0].error_code) == ("other", 3)
        await client.send(ApiKey.PRODUCE, 9, {**request, "acks": 0})
        assert await client.is_closed()


def rule(operation: int, kind: int, name: str) -> dict[str, Any]:
    return {
        "resource_type": kind,
        "resource_name": name,
        "resource_pattern_type": LITERAL,
        "principal": EVERYBODY,
        "host": "*",
        "operation": operation,
        "permission_type": DENY,
    }


async def test_many_denials_are_logged_in_100_lines_and_all_answered(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "kafka.authorizer.logger")
    async with running(tmp_path, settings=OPEN) as server, client_of(server) as client:
        await create_topic(client, "t0")
        creations = [
            rule(Operation.DESCRIBE, Resource.TOPIC, "*"),
            rule(Operation.DESCRIBE, Resource.CLUSTER, "kafka-cluster"),
        ]
        await client.ask(ApiKey.CREATE_ACLS, 3, {"creations": creations})
        caplog.clear()
        request = {"topics": [{"name": name} for name in reversed(NAMES)]}
        answer = await client.ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, request)
        assert [(topic.name, topic.error_code) for topic in answer.topics] == [
            (name, DENIED) for name in sorted(NAMES)
        ]
        assert len(caplog.messages) == 101
        assert "further denials" in caplog.messages[-1]
        caplog.clear()
        answer = await client.ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, {"topics": []})
        assert (answer.topics, caplog.messages) == ([], [])
        answer = await client.ask(ApiKey.LIST_OFFSETS, *LONG[ApiKey.LIST_OFFSETS])
        assert {topic.name for topic in answer.topics} == set(NAMES)
        assert len(caplog.messages) == 101
        long = [{"topic": name + "x" * 100, "partitions": [0]} for name in NAMES]
        answer = await client.ask(ApiKey.DESCRIBE_LOG_DIRS, 4, {"topics": long})
        assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


async def test_long_request_is_answered_like_a_short_one(tmp_path: Path) -> None:
    settings = {"authorizer.class.name": STANDARD, "super.users": "User:ANONYMOUS"}
    async with running(tmp_path, settings=settings) as server, client_of(server) as client:
        await create_topic(client, "t0")
        assert "t0" in broker_of(server).metadata.image.topics
        long = [{"topic": name + "x" * 100, "partitions": [0]} for name in NAMES]
        topics = [{"topic": "t0", "partitions": [0]}]
        for requested_topics in (topics, long + topics):
            answer = await client.ask(ApiKey.DESCRIBE_LOG_DIRS, 4, {"topics": requested_topics})
            (directory,) = answer.results
            assert [topic.name for topic in directory.topics] == ["t0"]
        request = {"topics": [{"name": name} for name in NAMES]}
        answer = await client.ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, request)
        assert [(t.name, t.error_code) for t in answer.topics[:2]] == [("t0", 0), ("t1", 3)]
        assert len(answer.topics) == MANY
