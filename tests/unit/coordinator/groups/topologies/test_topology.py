"""The topology of an application, from a heartbeat or a record."""

import pytest

from tests.support.coordinators.streams_kit import internal, subtopology, topology
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.group_records import GroupRecordKind, decode_record_value
from wirebroker.coordinator.groups.streams.streams_records import topology_record
from wirebroker.coordinator.groups.topologies.topology import topic_names, topology_of

BODY = topology(
    subtopology("b", "t", "u", sinks=["r"], copartition=[([0, 1], [])]),
    subtopology("a", repartition=[internal("r", 4, 2, x_y="z")], changelogs=[internal("log")]),
    epoch=3,
)


def test_topology_knows_the_readers_of_topics_and_what_it_requires():
    result = topology_of(BODY)
    assert result.epoch == 3
    assert list(result.subtopologies) == ["b", "a"]
    assert result.subtopology_of == {"t": "b", "u": "b", "r": "a"}
    assert result.required_topics == {"t", "u", "r", "log"}
    assert list(topic_names(BODY)) == ["t", "u", "r", "r", "log"]
    assert result.size_bytes == len("b" + "tu" + "r" + "a" + "r" + "x.yz" + "log")


def test_topology_survives_its_record():
    result = topology_of(BODY)
    record = topology_record("g", result)
    assert record.value is not None
    value = decode_record_value(GroupRecordKind.STREAMS_GROUP_TOPOLOGY, record.value)
    assert topology_of(value) == result


def test_order_of_subtopologies_does_not_matter():
    assert topology_of(topology(*reversed(BODY.subtopologies), epoch=3)) == topology_of(BODY)
    assert topology_of(topology(*BODY.subtopologies, epoch=4)) != topology_of(BODY)


@pytest.mark.parametrize(
    "body", [topology(epoch=-1), topology(subtopology("0", "t"), subtopology("0", "u"))]
)
def test_contradictions_are_errors(body):
    with pytest.raises(KafkaError) as refusal:
        topology_of(body)
    assert refusal.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
