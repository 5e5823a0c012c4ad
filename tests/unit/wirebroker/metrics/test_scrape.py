"""/metrics reports what happened, at a bounded cost."""

from __future__ import annotations

import asyncio
import gc
import resource
from typing import TYPE_CHECKING

from tests.support.brokers.servers import (
    ThreadedServer,
    broker_of,
    client_of,
    config_of,
    memory_directory,
    running,
)
from tests.support.harness.turn_work import TurnWork
from tests.support.http.http_client import ask_http
from tests.support.http.scrape_pages import HTTP, scrape, value
from tests.support.protocol.requests import append, create_topic, delete_topic, fetch, produce
from tests.support.records.batches import TIMESTAMP_MS, batch
from tests.support.records.clocks import MovedClock
from tests.support.tools.waiting import until
from wirebroker.base.clock import Slices, next_turn
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.metrics.page import label_texts

if TYPE_CHECKING:
    from tests.support.protocol.raw_client import RawClient
    from wirebroker.broker.server import Server

ONE_GROUP_PARTITION = HTTP | {
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
}
TRAFFIC = "kafka_server_brokertopicmetrics_"


async def commit(client: RawClient, group: str, topic: str, offset: int) -> None:
    await client.ask(ApiKey.FIND_COORDINATOR, 1, {"key": group, "key_type": 0})
    partition = {"partition_index": 0, "committed_offset": offset}
    body = {"group_id": group, "topics": [{"name": topic, "partitions": [partition]}]}
    codes: list[int] = []

    async def has_committed() -> bool:
        answer = await client.ask(ApiKey.OFFSET_COMMIT, 8, body)
        codes.append(answer.topics[0].partitions[0].error_code)
        return codes[-1] == ErrorCode.NONE

    while not await has_committed():
        assert len(codes) < 10_000, codes[-1]


async def test_topic_traffic_is_counted(tmp_path):
    async with running(tmp_path, settings=HTTP) as server, client_of(server) as client:
        await create_topic(client, "t", 2)
        records = batch(b"one", b"two", b"three")
        for _ in range(4):  # the third and the fourth take the fast path
            await append(client, "t", records)
        await append(client, "t", records, partition=1)
        broken = records[:-1] + b"?"
        assert (await produce(client, "t", broken)).error_code == ErrorCode.CORRUPT_MESSAGE
        sent = (await fetch(client, "t", 0)).records
        scraped = await scrape(server)
    size = len(records)
    for labels in ({}, {"topic": "t"}):
        assert value(scraped, f"{TRAFFIC}messagesin_total", **labels) == 15
        assert value(scraped, f"{TRAFFIC}bytesin_total", **labels) == 5 * size
        assert value(scraped, f"{TRAFFIC}bytesout_total", **labels) == len(sent) == 4 * size
        assert value(scraped, f"{TRAFFIC}totalproducerequests_total", **labels) == 6
        assert value(scraped, f"{TRAFFIC}totalfetchrequests_total", **labels) == 1
        assert value(scraped, f"{TRAFFIC}failedproducerequests_total", **labels) == 0
    counted = "kafka_network_requestmetrics_requests_total"
    assert value(scraped, counted, request="Produce", version=12) == 6
    assert value(scraped, counted, request="Fetch", version=12) == 1
    partition_labels = {"topic": "t", "partition": 0}
    assert value(scraped, "kafka_topic_partition_current_offset", **partition_labels) == 12
    assert value(scraped, "kafka_log_log_size", **partition_labels) == 4 * size
    assert value(scraped, "kafka_topic_partition_leader", **partition_labels) == 1
    assert value(scraped, "kafka_topic_partitions", topic="t") == 2


async def test_traffic_of_a_deleted_topic_stays_in_the_total(tmp_path):
    async with running(tmp_path, settings=HTTP) as server, client_of(server) as client:
        for name in ("gone", "left"):
            await create_topic(client, name)
            await append(client, name, batch(b"one"))
        await delete_topic(client, "gone")
        scraped = await scrape(server)
    assert value(scraped, f"{TRAFFIC}messagesin_total") == 2
    assert value(scraped, f"{TRAFFIC}messagesin_total", topic="gone") is None
    assert value(scraped, "kafka_controller_kafkacontroller_globaltopiccount") == 1


async def test_consumer_lag_is_given_in_records_and_seconds(tmp_path):
    clock = MovedClock()
    clock.jumped_ms = TIMESTAMP_MS - clock.now_ms()
    async with (
        running(tmp_path, settings=ONE_GROUP_PARTITION, clock=clock) as server,
        client_of(server) as client,
    ):
        await create_topic(client, "t", 2)
        for number in range(3):
            await append(client, "t", batch(b"v", timestamp_ms=TIMESTAMP_MS + 10_000 * number))
        await commit(client, "half", "t", 1)
        await commit(client, "all", "t", 3)
        clock.passed_ms += 60_000
        scraped = await scrape(server)
        partition_labels = {"topic": "t", "partition": 0}
        half, everything = {"consumergroup": "half"}, {"consumergroup": "all"}
        lag_s = "wirebroker_consumergroup_lag_seconds"
        assert value(scraped, "kafka_consumergroup_lag", **half, **partition_labels) == 2
        assert value(scraped, "kafka_consumergroup_lag_sum", **half, topic="t") == 2
        # The second record is 50 s old, plus or minus the test's own time.
        assert 49 < (value(scraped, lag_s, **half, **partition_labels) or 0) < 110
        assert value(scraped, "kafka_consumergroup_lag", **everything, **partition_labels) == 0
        assert value(scraped, lag_s, **everything, **partition_labels) == 0
        # The other partition has no committed offset.
        other = {"topic": "t", "partition": 1}
        assert value(scraped, "kafka_consumergroup_current_offset", **half, **other) == -1
        assert value(scraped, lag_s, **half, **other) is None
        groups = "kafka_coordinator_group_groupmetadatamanager_"
        assert value(scraped, f"{groups}numoffsets") == 2
        await commit(client, "half", "t", 3)
        scraped = await scrape(server)
        assert value(scraped, lag_s, **half, **partition_labels) == 0


async def test_other_metric_dialects_are_shown_if_configured(tmp_path):
    settings = ONE_GROUP_PARTITION | {"wirebroker.metrics.dialects": "confluent,kminion"}
    async with running(tmp_path, settings=settings) as server, client_of(server) as client:
        await create_topic(client, "t")
        await append(client, "t", batch(b"one"))
        await commit(client, "g", "t", 0)
        scraped = await scrape(server)
    assert value(scraped, f"{TRAFFIC}messagesinpersec", topic="t") == 1
    requests = "kafka_network_requestmetrics_requestspersec"
    assert value(scraped, requests, request="Produce", version=12) == 1
    connections = "kafka_server_socketservermetrics_connection_count"
    assert value(scraped, connections, listener="PLAINTEXT") == 1
    lag = "kminion_kafka_consumer_group_topic_partition_lag"
    assert value(scraped, lag, group_id="g", topic_name="t", partition_id=0) == 1
    names = {name for name, _ in scraped}
    assert not any(
        name.startswith(("kafka_consumergroup", f"{TRAFFIC}messagesin_")) for name in names
    )


async def test_offline_replicas_and_directories_are_counted(tmp_path):
    async with running(tmp_path, settings=HTTP) as server, client_of(server) as client:
        await create_topic(client, "t")
        scraped = await scrape(server)
        assert value(scraped, "kafka_server_replicamanager_atminisrpartitioncount") == 1
        assert value(scraped, "kafka_log_logmanager_cordonedlogdirectorycount") == 0
        (directory,) = broker_of(server).replicas.directories
        broker_of(server).replicas.directory_failed(directory, OSError("broken"))
        directory.is_cordoned = True
        scraped = await scrape(server)
        assert value(scraped, "kafka_log_logmanager_cordonedlogdirectorycount") == 1
        assert value(scraped, "kafka_log_logmanager_offlinelogdirectorycount") == 1
        assert value(scraped, "kafka_server_replicamanager_offlinereplicacount") == 1
        assert value(scraped, "kafka_server_replicamanager_leadercount") == 0


async def test_request_handler_idle_ratio_is_that_of_the_loop(tmp_path):
    clock = MovedClock()
    async with running(tmp_path, settings=HTTP, clock=clock) as server:
        idle = "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent"
        await scrape(server)
        # So much that a busy machine's seconds are negligible.
        clock.passed_ms += 1_000_000
        server.metrics.loop_hold_ms.record(250_000)
        scraped = await scrape(server)
        assert 0.7 < (value(scraped, idle) or 0) < 0.76


def test_scrape_of_many_partitions_does_not_block_the_loop(tmp_path):
    """A call takes about 0.1 us, and Python's overhead as much again."""
    with (
        memory_directory(tmp_path) as directory,
        ThreadedServer(config_of(directory, settings=HTTP)) as threaded,
    ):
        threaded.call(_create_topics(threaded.server))
        gc.collect()
        work = TurnWork(threaded.watch)
        threaded.call(work.begin())
        threaded.call(_scrape_all(threaded.server))
        threaded.call(work.end())
    assert 0 < work.total < 250_000
    assert work.largest < 50_000


async def _create_topics(server: Server) -> None:
    async with client_of(server) as client:
        for number in range(100):
            await create_topic(client, f"t{number}", 10)
    replicas = broker_of(server).replicas
    await until(lambda: sum(1 for _ in replicas) == 1_000)


async def _scrape_all(server: Server) -> None:
    assert server.http is not None
    reply = await ask_http(server.http.addresses[0], "/metrics")
    assert reply.body.count(b"\nkafka_log_log_size{") == 1_000


async def test_large_topics_and_groups_do_not_block_the_loop(tmp_path, monkeypatch):
    turns = 0
    written: dict[int, int] = {}

    async def count_turns() -> None:
        nonlocal turns
        while True:
            await next_turn()
            turns += 1

    def counted(labels):
        written[turns] = written.get(turns, 0) + 1
        return label_texts(labels)

    async with running(tmp_path, settings=ONE_GROUP_PARTITION) as server:
        async with client_of(server) as client:
            await create_topic(client, "t", 100)
            await commit(client, "g", "t", 0)
        for module in ("scrape", "group_page"):
            monkeypatch.setattr(f"wirebroker.metrics.{module}.label_texts", counted)
        monkeypatch.setattr(Slices, "SECONDS", 0.0)
        counting = asyncio.create_task(count_turns())
        scraped = await scrape(server)
        counting.cancel()
    assert sum(written.values()) > 200
    # The slice time is zero, so each slice ends after one item.
    assert max(written.values()) <= 3
    lag = {"consumergroup": "g", "topic": "t"}
    assert value(scraped, "kafka_consumergroup_current_offset", **lag, partition=99) == -1


async def test_group_names_are_escaped_in_labels(tmp_path):
    hostile = 'g",topic="x"} 1\nkafka_brokers 7\r\\"\x85\u2028\0'
    async with running(tmp_path, settings=ONE_GROUP_PARTITION) as server:
        async with client_of(server) as client:
            await create_topic(client, "t")
            await commit(client, hostile, "t", 0)
        scraped = await scrape(server)
    assert value(scraped, "kafka_brokers") == 1
    labels = {"consumergroup": hostile, "topic": "t", "partition": 0}
    assert value(scraped, "kafka_consumergroup_lag", **labels) == 0


async def test_standard_process_metrics_are_shown(tmp_path):
    async with running(tmp_path, settings=HTTP) as server:
        scraped = await scrape(server)
    own = resource.getrusage(resource.RUSAGE_SELF)
    assert 0 < (value(scraped, "process_cpu_seconds_total") or 0) <= own.ru_utime + own.ru_stime + 1
    assert value(scraped, "process_max_fds") == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    assert 3 < (value(scraped, "process_open_fds") or 0) < 10_000
    assert 1 << 20 < (value(scraped, "process_resident_memory_bytes") or 0) < 16 << 30
