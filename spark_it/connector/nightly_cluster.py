"""Spark streams from a cluster of three wirebrokers (`python -m tests.nightly spark-cluster`).

Each node is a broker and a voter. The active controller, which also leads a partition, is killed
and restarted four times while a producer writes with acks=all.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.clients.message import WAIT_S
from spark_it.connector.test_stream import (
    PARTITIONS,
    FileSink,
    Writer,
    read_stream,
    rows_read,
    stopped_at_the_end,
    wait_for_rows,
    wait_until,
)
from spark_it.kit import records
from spark_it.kit.records import Count
from tests.support.brokers.own_trio import VotingTrio

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.long, pytest.mark.java]

KILLS = 4


def test_stream_has_each_record_once_while_leaders_are_killed(
    spark: SparkSession, topic: str, tmp_path: Path
) -> None:
    with VotingTrio(tmp_path / "cluster") as trio:
        admin = AdminClient({"bootstrap.servers": trio.bootstrap})
        new = NewTopic(topic, PARTITIONS, replica_assignment=[[2, 3, 1], [3, 1, 2], [1, 2, 3]])
        admin.create_topics([new], operation_timeout=WAIT_S)[topic].result(WAIT_S)
        writer = Writer(trio.bootstrap, topic)
        sink = FileSink(spark, tmp_path)
        table = read_stream(spark, trio, topic, maxOffsetsPerTrigger="3000")
        killed: list[int] = []
        with stopped_at_the_end(sink.start(table)) as query:
            for _ in range(KILLS):
                wait_for_rows(query, rows_read(query) + 3_000)
                killed.append(trio.leader_id())
                trio.brokers[killed[-1]].kill9()
                # From partitions that only the remaining brokers store.
                wait_for_rows(query, rows_read(query) + 3_000)
                trio.brokers[killed[-1]].start()
                wait_until(query, lambda: _is_whole(admin, topic), "all replicas in sync")
            count = writer.finish()
            wait_for_rows(query, count)
            assert sink.count() == Count.of_all(count)
        ends = records.end_offsets(trio.bootstrap, topic, partitions=PARTITIONS)
        assert sum(ends) == count
    sys.stdout.write(f"stream of a cluster: {KILLS} kills of {killed}, {count} records\n")


def _is_whole(admin: AdminClient, topic: str) -> bool:
    partitions = admin.list_topics(topic, timeout=WAIT_S).topics[topic].partitions
    return all(len(partition.isrs) == 3 for partition in partitions.values())
