"""Topologies that are prepared before their heartbeats give what the heartbeats would compute."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.coordinators.kit import one_broker, topic
from tests.support.coordinators.streams_kit import StreamsGroups, internal, subtopology, topology
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.groups.streams import prepared_topology, streams_update
from wirebroker.coordinator.groups.streams.prepared_topology import (
    PreparedTopology,
    TopologyInputs,
    inputs_of,
    prepare,
)
from wirebroker.coordinator.groups.streams.streams_request import StreamsHeartbeat
from wirebroker.coordinator.groups.topologies.topology import StreamsTopology, topology_of

TOPOLOGY = topology(
    subtopology("0", "t", sinks=["r"]),
    subtopology("1", repartition=[internal("r")], changelogs=[internal("log")]),
)
LOOP = topology(subtopology("0", repartition=[internal("r")], sinks=["r"]))
TWICE = topology(subtopology("0", "t"), subtopology("0", "t"))


def started(*, prepares: bool) -> StreamsGroups:
    groups = StreamsGroups(image=one_broker(*topic("t", 1, partitions=3)))
    groups.prepares = prepares
    return groups


def history(groups: StreamsGroups) -> list[Any]:
    """Return the responses and the log of a group whose topics are created."""
    answers = [groups.enter("a", topology=TOPOLOGY)]
    groups.create_internal(answers[0])
    answers.append(groups.stay("a"))
    groups.advance(1_000)
    answers += [groups.stay("a"), groups.enter("b", topology=TOPOLOGY)]
    groups.create_topic("other", 9, 1)
    answers += [groups.stay("a"), groups.stay("b")]
    return [answers, groups.log]


@pytest.fixture
def nothing_in_operations(monkeypatch):
    """Let operations parse, encode and configure nothing."""

    def fail(*_: Any) -> None:
        raise AssertionError("it was prepared")

    for name in ("topology_of", "topology_record", "configure"):
        monkeypatch.setattr(streams_update, name, fail)


def test_prepared_topologies_change_no_response_and_no_record():
    assert history(started(prepares=True)) == history(started(prepares=False))


@pytest.mark.usefixtures("nothing_in_operations")
def test_operations_use_what_was_prepared():
    answers, _ = history(started(prepares=True))
    assert all(answer.get("error_code", ErrorCode.NONE) is ErrorCode.NONE for answer in answers)


@pytest.mark.parametrize("refused", [LOOP, TWICE, topology(epoch=-1)], ids=["loop", "twice", "-1"])
def test_prepared_topologies_are_refused_alike(refused):
    first, second = (started(prepares=prepares) for prepares in (True, False))
    answer = first.enter("a", topology=refused)
    assert answer["error_code"] is not ErrorCode.NONE
    assert answer == second.enter("a", topology=refused)
    assert first.log == second.log == []


@pytest.mark.usefixtures("nothing_in_operations")
def test_error_of_a_prepared_topology_is_not_found_again():
    answer = started(prepares=True).enter("a", topology=LOOP)
    assert answer["error_code"] is ErrorCode.STREAMS_INVALID_TOPOLOGY


def request(epoch: int, requested: Any, *, is_long: bool = True) -> StreamsHeartbeat:
    body = SimpleNamespace(group_id="g", member_epoch=epoch, topology=requested)
    return StreamsHeartbeat(body, 1, "client", "/1.2.3.4", is_long)


def prepared_now(groups: StreamsGroups, heard: StreamsHeartbeat) -> PreparedTopology:
    inputs = inputs_of(groups.shard, heard)
    assert inputs is not None
    return prepare(inputs)


def is_valid(groups: StreamsGroups, heard: StreamsHeartbeat, prepared: PreparedTopology) -> bool:
    inputs = inputs_of(groups.shard, heard)
    assert inputs is not None
    return prepared.is_from(inputs, groups.shard.topic_hashes)


def test_result_is_outdated_once_its_topics_have_changed():
    groups, heard = started(prepares=True), request(0, TOPOLOGY)
    prepared = prepared_now(groups, heard)
    assert prepared.parsed is not None
    groups.create_topic("other", 9, 1)
    assert is_valid(groups, heard, prepared)
    assert prepared.configured_now(prepared.parsed, groups.shard.topic_hashes) is not None
    groups.create_topic("r", 10, 3)
    assert not is_valid(groups, heard, prepared)
    assert prepared.configured_now(prepared.parsed, groups.shard.topic_hashes) is None


def test_result_is_outdated_once_the_group_has_a_topology():
    groups, heard = started(prepares=True), request(0, TOPOLOGY)
    prepared = prepared_now(groups, heard)
    groups.enter("a", topology=TOPOLOGY)
    assert not is_valid(groups, heard, prepared)
    present = groups.streams_group().topology
    assert present is not None
    assert prepared.configured_now(present, groups.shard.topic_hashes) is None


def test_result_is_outdated_once_the_shard_was_loaded_again():
    groups, heard = started(prepares=True), request(0, TOPOLOGY)
    groups.create_topic("other", 9, 1)
    prepared, loaded = prepared_now(groups, heard), groups.reloaded()
    assert prepared.parsed is not None
    assert not is_valid(loaded, heard, prepared)
    assert prepared.configured_now(prepared.parsed, loaded.shard.topic_hashes) is None


def test_topology_that_cannot_be_parsed_is_not_prepared_again():
    groups, heard = started(prepares=True), request(0, TWICE)
    prepared = prepared_now(groups, heard)
    assert prepared.parsed is None
    assert is_valid(groups, heard, prepared)


def test_error_is_raised_without_its_frames():
    parsed = topology_of(LOOP)
    groups = started(prepares=True)
    prepared = prepared_now(groups, request(0, LOOP))
    assert isinstance(prepared.topology, StreamsTopology)
    assert prepared.topology == parsed
    with pytest.raises(KafkaError, match="loops"):
        prepared.configured_now(prepared.topology, groups.shard.topic_hashes)
    assert isinstance(prepared.configured, KafkaError)
    assert prepared.configured.__traceback__ is None


def inputs_if_large(groups: StreamsGroups, epoch: int) -> TopologyInputs | None:
    return inputs_of(groups.shard, request(epoch, None, is_long=False))


def test_only_large_topologies_are_prepared(monkeypatch):
    groups = started(prepares=False)
    assert inputs_of(groups.shard, request(0, TOPOLOGY, is_long=False)) is None
    groups.enter("a", topology=TOPOLOGY)
    assert inputs_if_large(groups, 1) is None
    monkeypatch.setattr(prepared_topology, "_FEW", 4)
    inputs = inputs_if_large(groups, 1)
    assert inputs is not None
    assert (inputs.present, inputs.topics) == (
        groups.streams_group().topology,
        groups.shard.image.topics,
    )
    assert inputs_if_large(groups, -1) is None
    groups.stay("a")
    assert inputs_if_large(groups, 1) is None
    groups.create_topic("other", 9, 1)
    assert inputs_if_large(groups, 1) is None
    groups.create_topic("r", 10, 3)
    assert inputs_if_large(groups, 1) is not None
