"""The benchmarks' load generator counts exactly what a broker stores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.load import generators
from compat_tests.support.topics import create
from tests.support.protocol.raw_client import BlockingClient
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from tests.support.brokers.brokers import Broker

SHORT_S = 0.2
BATCH = generators.one_batch(records=3, record_bytes=100)


def records_in(broker: Broker, topic: str, partitions: int) -> list[int]:
    client = BlockingClient(("127.0.0.1", broker.port))
    partition_fields = [{"partition_index": index, "timestamp": -1} for index in range(partitions)]
    request = {"replica_id": -1, "topics": [{"name": topic, "partitions": partition_fields}]}
    answer = client.ask(ApiKey.LIST_OFFSETS, 1, request)
    client.close()
    by_index = {
        partition.partition_index: partition.offset for partition in answer.topics[0].partitions
    }
    return [by_index[index] for index in range(partitions)]


def test_counted_records_are_in_the_log(broker: Broker, topic: str):
    create(broker.bootstrap, topic, partitions=2)
    sample = generators.raw_produce(
        broker, topic, connections=4, batch=BATCH, records=3, partitions=2, seconds=SHORT_S
    )
    in_log = records_in(broker, topic, 2)
    assert sample.records == sum(in_log)
    assert min(in_log) > 0


def test_few_connections_produce_to_all_partitions_round_robin(broker: Broker, topic: str):
    create(broker.bootstrap, topic, partitions=7)
    sample = generators.raw_produce(
        broker, topic, connections=2, batch=BATCH, records=3, partitions=7, seconds=SHORT_S
    )
    in_log = records_in(broker, topic, 7)
    assert sample.records == sum(in_log)
    # A connection is at most one round ahead, and its last round may be incomplete.
    assert min(in_log) > 0


def test_fetch_load_uses_max_bytes(broker: Broker, topic: str):
    create(broker.bootstrap, topic, partitions=1)
    large_batch = generators.one_batch(records=1, record_bytes=50_000)
    generators.raw_produce(
        broker, topic, connections=1, batch=large_batch, records=1, seconds=SHORT_S
    )
    with pytest.raises(RuntimeError, match="or larger batches"):
        generators.raw_fetch(broker, topic, connections=2, max_bytes=20_000, seconds=SHORT_S)
    sample = generators.raw_fetch(broker, topic, connections=2, max_bytes=60_000, seconds=SHORT_S)
    assert sample.records > 0
    assert sample.extra["p50_us"] <= sample.extra["p99_us"] <= sample.extra["p999_us"]


def test_error_response_ends_the_run(broker: Broker, topic: str):
    create(broker.bootstrap, topic, partitions=1)
    with pytest.raises(RuntimeError, match="answers with error 3"):
        generators.raw_produce(
            broker, topic, connections=2, batch=BATCH, records=3, partitions=2, seconds=SHORT_S
        )
