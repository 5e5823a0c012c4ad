"""Both brokers apply quotas alike: errors, reported throttle times, and actual delays."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any

import pytest

from compat_tests.clients.java import CONFIGS, run
from compat_tests.conftest import new_topic_name
from compat_tests.interchange.shared_folder import SharedFolder, address
from compat_tests.support.raw_requests import Requests
from tests.support.brokers.brokers import make_broker
from tests.support.protocol.raw_client import request_frame
from tests.support.protocol.requests import fetch_request, produce_request
from tests.support.records.batches import batch
from tests.support.tools.waiting import eventually
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tests.support.brokers.brokers import Broker

# Two samples of a second, of which at least one counts: a quota of 100 ms recovers soon.
WINDOW = {"quota.window.num": "2", "controller.quota.window.num": "2"}
ME = {"user": "ANONYMOUS"}
# Tolerance of throttle times: they depend on the start of a sample, to the millisecond.
NEAR_MS = 100
# By then the previous test no longer counts, and the bucket is full.
_OVER_S = 2.5
_FULL_S = 2.5
# By then Kafka's broker has applied its controller's changes.
_FOLLOWED_S = 0.3


@pytest.fixture(
    scope="module",
    params=["wirebroker", pytest.param("apache", marks=[pytest.mark.java, pytest.mark.nightly])],
)
def limited(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broker]:
    with make_broker(request.param, tmp_path_factory.mktemp("limited"), WINDOW) as running:
        yield running


def entry(entity: Mapping[str, str | None], **quotas: float | None) -> dict[str, Any]:
    ops = [
        {"key": key, "value": value or 0.0, "remove": value is None}
        for key, value in quotas.items()
    ]
    parts = [{"entity_type": kind, "entity_name": name} for kind, name in entity.items()]
    return {"entity": parts, "ops": ops}


def alter(requests: Requests, *entries: dict[str, Any]) -> list[int]:
    request = {"entries": list(entries), "validate_only": False}
    answer = requests.try_ask(ApiKey.ALTER_CLIENT_QUOTAS, 1, request)
    return sorted(result.error_code for result in answer.entries)


@contextlib.contextmanager
def with_quota(broker: Broker, **quotas: float) -> Iterator[tuple[Requests, str]]:
    """Give all clients of a broker a quota; create a topic before."""
    with (
        contextlib.closing(Requests(address(broker))) as admin,
        contextlib.closing(Requests(address(broker))) as requests,
    ):
        topic = new_topic_name()
        admin.create(topic, 1)
        admin.append(topic, batch(b"x" * 5000))
        assert alter(admin, entry(ME, **quotas)) == [0]
        # Kafka's broker applies changes some time after the controller's response.
        described: dict[str, Any] = {"components": [], "strict": False}
        admin.poll(lambda: admin.ask(ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, described).entries)
        time.sleep(_OVER_S)  # until earlier samples no longer count
        try:
            yield requests, topic
        finally:
            assert alter(admin, entry(ME, **dict.fromkeys(quotas))) == [0]
            time.sleep(_FOLLOWED_S)  # until the broker has applied it


def silence_ms(requests: Requests) -> float:
    """Return the delay of the response to a connection's next request."""
    began = time.monotonic()
    requests.ask(ApiKey.API_VERSIONS, 0, {})
    return (time.monotonic() - began) * 1000


@pytest.mark.parametrize("version", [8, 12])
def test_producer_is_throttled_after_exceeding_quota(limited: Broker, version: int) -> None:
    with with_quota(limited, producer_byte_rate=4000) as (requests, topic):
        request = produce_request({(topic, 0): batch(b"x" * 5000)})
        size = len(request_frame(ApiKey.PRODUCE, version, request)) - 4
        answer = requests.ask(ApiKey.PRODUCE, version, request)
        assert abs(answer.throttle_time_ms - (size - 4000) / 4) < NEAR_MS
        assert silence_ms(requests) > answer.throttle_time_ms - NEAR_MS


def test_consumer_over_quota_gets_empty_response_and_throttle_time(limited: Broker) -> None:
    with with_quota(limited, consumer_byte_rate=6000) as (requests, topic):
        first = requests.ask(ApiKey.FETCH, 12, fetch_request({(topic, 0): 0}, session=(0, 0)))
        assert (first.throttle_time_ms, len(first.responses)) == (0, 1)
        session = first.session_id
        session_request = fetch_request({(topic, 0): 0}, session=(session, 1))
        second = requests.ask(ApiKey.FETCH, 12, session_request)
        assert abs(second.throttle_time_ms - 700) < NEAR_MS * 1.5
        assert (second.responses, second.session_id) == ([], session)
        assert silence_ms(requests) > second.throttle_time_ms - NEAR_MS


@pytest.mark.parametrize(("version", "code"), [(7, ErrorCode.THROTTLING_QUOTA_EXCEEDED), (5, 0)])
def test_topic_creations_over_quota_are_rejected_or_throttled(
    limited: Broker, version: int, code: int
) -> None:
    with with_quota(limited, controller_mutation_rate=10) as (requests, _):
        time.sleep(_FULL_S)  # until the quota is unused
        topics = [
            {"name": new_topic_name(), "num_partitions": 21, "replication_factor": 1}
            for _ in range(2)
        ]
        request = {"topics": topics, "timeout_ms": 30_000}
        answer = requests.try_ask(ApiKey.CREATE_TOPICS, version, request)
        assert sorted(topic.error_code for topic in answer.topics) == [0, code]
        expected_ms = 100 if code else 2200
        assert abs(answer.throttle_time_ms - expected_ms) < NEAR_MS


REFUSED: list[tuple[dict[str, str | None], dict[str, float]]] = [
    ({}, {"producer_byte_rate": 1}),
    ({"planet": "mars"}, {"producer_byte_rate": 1}),
    ({"user": ""}, {"producer_byte_rate": 1}),
    ({"ip": "10.0.0.1", "user": "a"}, {"connection_creation_rate": 1}),
    ({"ip": "10.0.0.1"}, {"producer_byte_rate": 1}),
    ({"user": "a"}, {"connection_creation_rate": 1}),
    ({"user": "a"}, {"planets": 1}),
    ({"user": "a"}, {"producer_byte_rate": 0}),
    ({"user": "a"}, {"producer_byte_rate": -1}),
    ({"user": "a"}, {"producer_byte_rate": 1.5}),
    ({"user": "a"}, {"consumer_byte_rate": 2.0**64}),
    ({"ip": None}, {"connection_creation_rate": 2.0**31}),
    ({"ip": None}, {"connection_creation_rate": 0}),
]


@pytest.mark.parametrize(("entity", "quotas"), REFUSED)
def test_invalid_quota_is_rejected(limited: Broker, entity: Any, quotas: Any) -> None:
    with contextlib.closing(Requests(address(limited))) as requests:
        assert alter(requests, entry(entity, **quotas)) == [ErrorCode.INVALID_REQUEST]


def test_duplicate_quota_entities_and_keys_are_rejected(limited: Broker) -> None:
    with contextlib.closing(Requests(address(limited))) as requests:
        alice = entry({"user": "alice"}, producer_byte_rate=1)
        assert alter(requests, alice, alice) == [ErrorCode.INVALID_REQUEST]
        repeated_entry = entry({"user": "bob"}, producer_byte_rate=1)
        repeated_entry["ops"] *= 2
        assert alter(requests, repeated_entry) == [ErrorCode.INVALID_REQUEST]


SET = {
    ("--entity-type", "users", "--entity-name", "alice"): "producer_byte_rate=1024",
    ("--entity-type", "users", "--entity-default"): "request_percentage=12.5",
    (
        *("--entity-type", "users", "--entity-name", "alice"),
        *("--entity-type", "clients", "--entity-default"),
    ): "consumer_byte_rate=2048",
    ("--entity-type", "ips", "--entity-name", "127.0.0.1"): "connection_creation_rate=1000",
}


def described(broker: Broker) -> list[str]:
    lines: list[str] = []
    for kinds in (("users",), ("users", "clients"), ("ips",)):
        flags = [flag for kind in kinds for flag in ("--entity-type", kind)]
        lines += run(broker.bootstrap, CONFIGS, "--describe", *flags).splitlines()
    return sorted(lines)


@pytest.mark.java
def test_both_brokers_apply_quotas_stored_in_directory(tmp_path: Path) -> None:
    folder = SharedFolder(tmp_path)
    with folder.run("wirebroker") as broker:
        for entity, value in SET.items():
            run(broker.bootstrap, CONFIGS, "--alter", *entity, "--add-config", value)
        before = described(broker)
        assert len(before) == len(SET)
    with folder.run("apache") as broker:
        assert described(broker) == before
        entity = ("--entity-type", "users", "--entity-name", "alice")
        run(broker.bootstrap, CONFIGS, "--alter", *entity, "--delete-config", "producer_byte_rate")
        eventually(lambda: len(described(broker)) == len(SET) - 1)
        after = described(broker)
    with folder.run("wirebroker") as broker:
        assert described(broker) == after
