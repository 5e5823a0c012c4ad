"""Heartbeats of consumer groups that repeat an earlier one have the same effects and responses."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.coordinators.group_kit import REBALANCE_MS
from tests.support.coordinators.kit import image_of, topic
from tests.unit.wirebroker.coordination.group_server_kit import ListPartition, group_broker, turns
from wirebroker.api.modules import load_handlers
from wirebroker.api.registry import REGISTRY
from wirebroker.authorization.guarded import guarded
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.messages import (
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from wirebroker.codecs.metadata_records import RecordType, metadata_record
from wirebroker.coordinator.groups.consumer.consumer_group import ConsumerGroup
from wirebroker.request.request import Request
from wirebroker.request.session import Session

load_handlers()

KEY = ApiKey.CONSUMER_GROUP_HEARTBEAT
FEATURE = metadata_record(RecordType.FEATURE_LEVEL, name="group.version", feature_level=1)
[HANDLER] = [handler for handler in REGISTRY.handlers() if handler.key is KEY]


class Scene:
    """A broker with the group "g", and a count of the repeated heartbeats."""

    def __init__(self, *records: Any) -> None:
        self.partition = ListPartition()
        self.broker: Any = group_broker(
            FEATURE, *topic("t", 1, partitions=2), *records, partitions={0: self.partition}
        )
        self.broker.authorization = None
        self.repeated = 0
        self.session = session("client:1")

    async def ask(self, member_id: str, epoch: int, **fields: Any) -> Any:
        """Send a heartbeat as the dispatcher does."""
        body = {"group_id": "g", "member_id": member_id, "member_epoch": epoch, **fields}
        frame = memoryview(bytearray(encode_request(KEY, 1, body)))
        request = Request(KEY, 1, 7, "client", frame, 0, self.session)
        assert HANDLER.repeat is not None
        data = HANDLER.repeat(self.broker, request)
        if data is None:
            response = HANDLER.function(self.broker, request, decode_request(KEY, 1, frame, 0))
            if hasattr(response, "__await__"):
                response = await response
            data = encode_response(KEY, 1, response)
        else:
            self.repeated += 1
        return decode_response(KEY, 1, memoryview(data))

    async def join(self, member_id: str, **fields: Any) -> int:
        """Join and take the assignment; return the epoch."""
        await turns()
        subscription = {"subscribed_topic_names": ["t"]}
        joining = {"rebalance_timeout_ms": REBALANCE_MS, "topic_partitions": []}
        answer = await self.ask(member_id, 0, **{**subscription, **joining, **fields})
        assert answer.error_code == ErrorCode.NONE, answer
        return int(answer.member_epoch)

    @property
    def group(self) -> ConsumerGroup:
        group = self.shard.groups["g"]
        assert isinstance(group, ConsumerGroup)
        return group

    @property
    def shard(self) -> Any:
        return self.broker.groups.shard_of("g")


def session(peer: str) -> Session:
    return Session(
        connection_id="c",
        peer=peer,
        listener_name="PLAINTEXT",
        local_host="here",
        local_port=9092,
    )


async def at_rest() -> tuple[Scene, int]:
    """Return a group whose only member has sent the same heartbeat twice."""
    scene = Scene()
    epoch = await scene.join("m")
    first = await scene.ask("m", epoch)
    assert scene.repeated == 0
    second = await scene.ask("m", epoch)
    assert scene.repeated == 1
    assert first == second
    assert second.member_id == "m"
    assert second.member_epoch == epoch
    assert second.assignment is None
    return scene, epoch


async def test_repeated_heartbeat_restarts_the_session():
    scene, epoch = await at_rest()
    records = len(scene.partition.records())
    before = scene.shard.timers._events["g", "m", "session"]
    scene.broker.clock.passed_ms += 10_000
    await scene.ask("m", epoch)
    assert scene.repeated == 2
    after = scene.shard.timers._events["g", "m", "session"]
    assert after[0] == before[0] + 10_000
    assert len(scene.partition.records()) == records


@pytest.mark.parametrize(
    "fields",
    [
        {"rack_id": "r"},
        {"subscribed_topic_names": ["t"]},
        {"topic_partitions": []},
        {"server_assignor": "range"},
        {"rebalance_timeout_ms": REBALANCE_MS},
    ],
)
async def test_heartbeat_that_states_something_is_not_repeated(fields):
    scene, _ = await at_rest()
    for _ in range(2):
        await scene.ask("m", scene.group.members["m"].epoch, **fields)
    assert scene.repeated == 1


async def test_member_gets_its_new_assignment():
    scene, epoch = await at_rest()
    scene.broker.clock.passed_ms += 5_000
    await scene.join("n")
    answer = await scene.ask("m", epoch)
    assert scene.repeated == 1
    assert [len(entry.partitions) for entry in answer.assignment.topic_partitions] == [1]


async def test_removed_member_is_unknown():
    scene, epoch = await at_rest()
    await scene.ask("m", -1)
    answer = await scene.ask("m", epoch)
    assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID


async def test_changed_metadata_is_noticed():
    scene, epoch = await at_rest()
    image = image_of(*topic("u", 2), base=scene.broker.metadata.image)
    scene.broker.metadata.image = image
    await scene.ask("m", epoch)
    assert scene.repeated == 1, "the shard does not know it yet"
    scene.shard.apply_metadata(image, has_new_topics=True, changed=["u"])
    await scene.ask("m", epoch)
    assert scene.repeated == 1
    await scene.ask("m", epoch)
    assert scene.repeated == 2


async def test_other_settings_are_noticed():
    scene, epoch = await at_rest()
    scene.shard.settings = replace(scene.shard.settings, consumer_session_timeout_ms=50_000)
    await scene.ask("m", epoch)
    assert scene.repeated == 1


async def test_another_connection_is_noticed():
    """The member's address is in its record."""
    scene, epoch = await at_rest()
    scene.session = session("other:2")
    await scene.ask("m", epoch)
    assert scene.repeated == 1
    assert scene.group.members["m"].client_host == "/other"


async def test_response_waits_for_earlier_records():
    scene, epoch = await at_rest()
    scene.partition.commits_at_once = False
    scene.broker.clock.passed_ms += 5_000
    joining = {"rebalance_timeout_ms": REBALANCE_MS, "topic_partitions": []}
    frame = encode_request(
        KEY,
        1,
        {
            "group_id": "other",
            "member_id": "n",
            "member_epoch": 0,
            "subscribed_topic_names": ["t"],
            **joining,
        },
    )
    request = Request(KEY, 1, 7, "client", memoryview(bytearray(frame)), 0, scene.session)
    waiting = HANDLER.function(scene.broker, request, decode_request(KEY, 1, request.frame, 0))
    frame = encode_request(KEY, 1, {"group_id": "g", "member_id": "m", "member_epoch": epoch})
    request = Request(KEY, 1, 7, "client", memoryview(bytearray(frame)), 0, scene.session)
    assert HANDLER.repeat is not None
    assert HANDLER.repeat(scene.broker, request) is None
    scene.partition.commit()
    assert (await waiting)["member_id"] == "n"
    assert HANDLER.repeat(scene.broker, request) is not None


async def test_groups_with_regular_expressions_are_searched():
    scene = Scene()
    epoch = await scene.join("m", subscribed_topic_names=[], subscribed_topic_regex="t.*")
    for _ in range(3):
        answer = await scene.ask("m", epoch)
        epoch = answer.member_epoch
    assert scene.repeated == 0


async def test_repeated_heartbeats_of_a_group_are_bounded():
    scene, epoch = await at_rest()
    group = scene.group
    for number in range(100):
        scene.session = session(f"client:{number}")
        await scene.ask("m", epoch, instance_id=None)
        group.repeated[b"%d" % number] = group.repeated.popitem()[1]
    assert len(group.repeated) <= 1 + 16 + 1


@pytest.mark.parametrize("data", [b"", b"\x80\x01", b"\x05g", b"\x03\xff\xff"])
async def test_malformed_heartbeats_are_not_repeated(data):
    scene, _ = await at_rest()
    request = Request(KEY, 1, 7, "client", memoryview(bytearray(data)), 0, scene.session)
    assert HANDLER.repeat is not None
    assert HANDLER.repeat(scene.broker, request) is None


def test_rules_of_an_authorizer_see_each_heartbeat():
    assert HANDLER.repeat is not None
    authorization: Any = SimpleNamespace()
    wrapped = guarded(REGISTRY, authorization).handlers()
    assert all(handler.repeat is None for handler in wrapped)
