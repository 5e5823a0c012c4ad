"""The partition counts of repartition topics are those that Kafka's repeated visits give."""

from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.support.coordinators.streams_kit import internal, subtopology, topology
from wirebroker.codecs.errors import KafkaError
from wirebroker.coordinator.groups.java_collections import hash_order
from wirebroker.coordinator.groups.topologies.partition_counts import PartitionCounts
from wirebroker.coordinator.groups.topologies.topology import topology_of

SOURCES = {"a": 1, "b": 4, "c": 7}
INTERNAL = tuple("qrstuv")


@st.composite
def subtopologies(draw):
    return [
        subtopology(
            str(number),
            *draw(st.lists(st.sampled_from(sorted(SOURCES)), max_size=1)),
            sinks=draw(st.lists(st.sampled_from(INTERNAL), max_size=3)),
            repartition=[
                internal(name, draw(st.sampled_from([0, 0, 0, 5])))
                for name in draw(st.lists(st.sampled_from(INTERNAL), max_size=3, unique=True))
            ],
        )
        for number in range(draw(st.integers(1, 8)))
    ]


def visited(parsed):
    """Return the counts after visits of all subtopologies in turn; None if some stay unknown."""
    entries = [parsed.subtopologies[name] for name in hash_order(parsed.subtopologies)]
    read = [each for entry in entries for each in entry.repartition_source_topics]
    counts = {each.name: each.partition_count for each in read if each.partition_count}
    before = None
    while before != counts:
        before = dict(counts)
        for entry in entries:
            for sink in entry.repartition_sink_topics:
                inputs = [counts.get(each.name) for each in entry.repartition_source_topics]
                known = [*filter(None, inputs), *(SOURCES[name] for name in entry.source_topics)]
                if sink not in counts and known:
                    counts[sink] = max(known)
    sinks = [sink for entry in entries for sink in entry.repartition_sink_topics]
    names = {*sinks, *(each.name for each in read)}
    return counts if names <= counts.keys() else None


@given(subtopologies())
def test_counts_are_those_of_repeated_visits(entries):
    parsed = topology_of(topology(*entries))
    topics: Any = {
        name: SimpleNamespace(partitions=range(count)) for name, count in SOURCES.items()
    }
    counts = PartitionCounts(parsed, topics)
    expected = visited(parsed)
    try:
        decided = counts._of_repartition_topics()
    except KafkaError:
        decided = None
    assert decided == expected
