"""The partition of a group follows Java's hash."""

import pytest

from wirebroker.coordinator.groups.partitions import java_hash, partition_for


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("polygenelubricants", -(1 << 31)),
        ("\U0001f600", 1772899),
    ],
)
def test_group_id_hash_equals_javas(text, value):
    assert java_hash(text) == value


def test_smallest_hash_maps_to_partition_0():
    assert partition_for("polygenelubricants", 50) == 0
    assert partition_for("hello", 50) == 22


def test_group_partitions_match_apache_kafka():
    assert partition_for("g-t-1795259213", 50) == 19
    assert partition_for("h-t-1795259213", 50) == 44
