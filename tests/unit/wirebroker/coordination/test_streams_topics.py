"""The internal topics of streams groups: each is created once, and failures are reported."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.records.clocks import HandClock
from wirebroker.base.clock import next_turn
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordination import streams_topics
from wirebroker.coordination.streams_topics import StreamsTopics
from wirebroker.coordinator.controller.requests.request import Requester
from wirebroker.coordinator.groups.topologies.topology import TopologyTopic

REQUESTER = Requester(client_id="app")
KEPT_MS = 10_000


class Channel:
    """A controller that answers when it may."""

    def __init__(self) -> None:
        self.asked: list[tuple[list[str], Requester]] = []
        self.codes: dict[str, ErrorCode] = {}
        self.refusal: KafkaError | None = None
        # The controller of the same process leaves out fields that have their defaults.
        self.leaves_out_defaults = False

    async def forward(self, key: Any, version: int, body: Any, requester: Requester) -> Any:
        assert key is ApiKey.CREATE_TOPICS
        assert version == 7
        self.asked.append(([topic.name for topic in body.topics], requester))
        await next_turn()
        if self.refusal is not None:
            raise self.refusal
        return {"topics": [self._result(topic.name) for topic in body.topics]}

    def _result(self, name: str) -> dict[str, Any]:
        code = self.codes.get(name, ErrorCode.NONE)
        if self.leaves_out_defaults and code is ErrorCode.NONE:
            return {"name": name}
        return {"name": name, "error_code": code, "error_message": None}


def topics(*names: str) -> list[TopologyTopic]:
    return [TopologyTopic(name, 3, 0, (("cleanup.policy", "compact"),)) for name in names]


@pytest.fixture
def channel() -> Channel:
    return Channel()


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def creation(channel: Channel, clock: HandClock) -> StreamsTopics:
    return StreamsTopics(clock, channel)  # type: ignore[arg-type]


async def until_done(creation: StreamsTopics) -> None:
    while creation._tasks:
        await next_turn()


async def test_topic_is_created_in_the_name_of_the_client_once_at_a_time(creation, channel):
    creation.create(topics("a", "b"), REQUESTER, kept_ms=KEPT_MS)
    creation.create(topics("b", "c"), REQUESTER, kept_ms=KEPT_MS)
    await until_done(creation)
    assert channel.asked == [(["a", "b"], REQUESTER), (["c"], REQUESTER)]
    creation.create(topics("a"), REQUESTER, kept_ms=KEPT_MS)
    await until_done(creation)
    assert [names for names, _ in channel.asked][2:] == [["a"]]
    assert creation.failures(["a", "b", "c"]) == {}


async def test_failure_after_success_without_error_code_is_reported(creation, channel):
    channel.leaves_out_defaults = True
    channel.codes["b"] = ErrorCode.POLICY_VIOLATION
    creation.create(topics("a", "b"), REQUESTER, kept_ms=KEPT_MS)
    await until_done(creation)
    assert creation.failures(["a", "b"]) == {"b": "POLICY_VIOLATION"}


async def test_failure_is_reported_and_tried_again_later(creation, channel, clock):
    channel.codes["a"] = ErrorCode.POLICY_VIOLATION
    creation.create(topics("a", "b"), REQUESTER, kept_ms=KEPT_MS)
    await until_done(creation)
    assert creation.failures(["a", "b"]) == {"a": "POLICY_VIOLATION"}
    creation.create(topics("a"), REQUESTER, kept_ms=KEPT_MS)
    await until_done(creation)
    assert len(channel.asked) == 1
    clock.passed_ms += KEPT_MS
    assert creation.failures(["a"]) == {}
    creation.create(topics("a"), REQUESTER, kept_ms=KEPT_MS)
    await until_done(creation)
    assert len(channel.asked) == 2


async def test_unreachable_controller_is_a_failure_of_each_topic(creation, channel):
    channel.refusal = KafkaError(ErrorCode.NOT_CONTROLLER, "no controller")
    creation.create(topics("a", "b"), REQUESTER, kept_ms=KEPT_MS)
    await until_done(creation)
    assert creation.failures(["a", "b"]) == {"a": "no controller", "b": "no controller"}


async def test_creations_and_failures_are_bounded(creation, channel, monkeypatch):
    monkeypatch.setattr(streams_topics, "MOST_UNDER_CREATION", 3)
    monkeypatch.setattr(streams_topics, "MOST_FAILURES", 2)
    monkeypatch.setattr(streams_topics, "_MOST_AT_ONCE", 2)
    channel.codes = dict.fromkeys("abcd", ErrorCode.INVALID_REQUEST)
    creation.create(topics(*"abcd"), REQUESTER, kept_ms=KEPT_MS)
    await until_done(creation)
    assert [names for names, _ in channel.asked] == [["a", "b"], ["c"]]
    assert creation.failures("abcd").keys() == {"b", "c"}


async def test_stop_ends_all_work(creation, channel):
    creation.create(topics("a"), REQUESTER, kept_ms=KEPT_MS)
    await creation.stop()
    await next_turn()
    assert channel.asked == []
    assert not creation._tasks
