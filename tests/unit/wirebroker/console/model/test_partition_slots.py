"""Slots of partitions."""

from __future__ import annotations

from wirebroker.client.topics.leaders import TopicPartition
from wirebroker.console.model.partition_slots import SlotTable

ONE, TWO = bytes(15) + b"\x01", bytes(15) + b"\x02"


def test_a_topic_keeps_its_slots():
    table = SlotTable()
    first = table.take("orders", ONE, 3)
    table.take("payments", TWO, 2)
    assert table.take("orders", ONE, 3) == first
    assert [table.slot_of("orders", 2), table.slot_of("payments", 0)] == [2, 3]
    assert table.place_of(4) == TopicPartition("payments", 1)


def test_partitions_out_of_range_have_no_slot():
    table = SlotTable()
    table.take("orders", ONE, 3)
    assert table.slot_of("orders", 3) is None
    assert table.slot_of("orders", -1) is None
    assert table.slot_of("other", 0) is None


def test_a_topic_created_again_or_with_more_partitions_gets_new_slots():
    table = SlotTable()
    table.take("orders", ONE, 3)
    assert table.take("orders", TWO, 3).first == 3
    assert table.take("orders", TWO, 4).first == 6
    assert table.place_of(0) is None
    assert table.place_of(7) == TopicPartition("orders", 1)


def test_slots_of_deleted_topics_are_not_reused():
    table = SlotTable()
    table.take("orders", ONE, 3)
    table.retain([])
    assert table.place_of(0) is None
    assert table.take("orders", ONE, 3).first == 3


def test_a_table_with_mostly_deleted_topics_is_sparse():
    table = SlotTable()
    for number in range(4):
        table.take("orders", bytes([number]) * 16, 5000)
    assert not table.is_sparse
    table.take("orders", bytes(16), 5000)
    assert table.is_sparse
