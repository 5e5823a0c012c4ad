"""Keys are assigned to the same partitions as by Java's producer."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as other_murmur2

from wirebroker.client.records.partitioning import murmur2, partition_for


@given(st.binary(max_size=40))
def test_hash_equals_that_of_another_client(key):
    assert murmur2(key) == other_murmur2(key) & 0xFFFFFFFF


def test_hash_equals_the_values_of_kafkas_tests():
    """The cases of Kafka's UtilsTest.testMurmur2."""
    expected = {
        b"21": -973932308,
        b"foobar": -790332482,
        b"a-little-bit-long-string": -985981536,
        b"a-little-bit-longer-string": -1486304829,
        b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
        b"abc": 479470107,
    }
    assert {key: murmur2(key) for key in expected} == {
        key: value & 0xFFFFFFFF for key, value in expected.items()
    }


def test_partition_is_within_the_topic():
    partitions = {partition_for(str(number).encode(), 3) for number in range(100)}
    assert partitions == {0, 1, 2}
