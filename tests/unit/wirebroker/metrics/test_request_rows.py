"""Metrics of requests, queues, flushes and the log cleaner on /metrics."""

from __future__ import annotations

import asyncio

from tests.support.brokers.servers import broker_of, client_of, running
from tests.support.http.scrape_pages import HTTP, scrape, value
from tests.support.protocol.requests import append, create_topic, fetch, fetch_request, produce
from tests.support.records.batches import batch
from tests.support.records.clocks import MovedClock
from tests.support.tools.waiting import until
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

PREFIX = "kafka_network_requestmetrics_"
PURGATORY = "kafka_server_delayedoperationpurgatory_purgatorysize"
PHASES = ("totaltimems", "requestqueuetimems", "localtimems", "remotetimems", "responsesendtimems")


async def test_each_request_is_counted_in_all_phases(tmp_path):
    async with running(tmp_path, settings=HTTP) as server, client_of(server) as client:
        await create_topic(client, "t")
        for _ in range(5):  # the last ones take the fast path
            await append(client, "t", batch(b"v"))
        await fetch(client, "t", 0)
        scraped = await scrape(server)
    for phase in (*PHASES, "requestbytes"):
        for name, count in (("Produce", 5), ("FetchConsumer", 1), ("Fetch", 1)):
            assert value(scraped, f"{PREFIX}{phase}_count_total", request=name) == count
            median, percentile_99, percentile_999 = (
                value(scraped, PREFIX + phase, request=name, quantile=share)
                for share in ("0.5", "0.99", "0.999")
            )
            assert median is not None
            assert percentile_99 is not None
            assert percentile_999 is not None
            assert median <= percentile_99 <= percentile_999
    histogram = "wirebroker_request_microseconds"
    assert value(scraped, f"{histogram}_count", request="Produce") == 5
    assert value(scraped, f"{histogram}_bucket", request="Produce", le="+Inf") == 5
    assert value(scraped, f"{histogram}_count", request="Fetch") is None  # a sum only has its parts
    assert (value(scraped, f"{PREFIX}requestbytes", request="Produce", quantile="0.5") or 0) > 50


async def test_waiting_fetch_counts_as_remote_time_and_in_the_purgatory(tmp_path):
    async with (
        running(tmp_path, settings=HTTP) as server,
        client_of(server) as client,
        client_of(server) as waiter,
    ):
        await create_topic(client, "t")
        request = fetch_request({("t", 0): 0}, max_wait_ms=60_000, min_bytes=1)
        waiting = asyncio.create_task(waiter.ask(ApiKey.FETCH, 12, request))
        (partition,) = broker_of(server).replicas
        await until(lambda: partition.watcher_count > 0)
        assert value(await scrape(server), PURGATORY, delayedOperation="Fetch") == 1
        await append(client, "t", batch(b"v"))
        await waiting
        scraped = await scrape(server)
    assert value(scraped, PURGATORY, delayedOperation="Fetch") == 0
    assert value(scraped, PURGATORY, delayedOperation="Produce") == 0
    labels = {"request": "FetchConsumer", "quantile": "0.5"}
    remote = value(scraped, f"{PREFIX}remotetimems", **labels) or 0
    assert 0 < remote <= (value(scraped, f"{PREFIX}totaltimems", **labels) or 0)


async def test_quantiles_cover_recent_requests(tmp_path):
    clock = MovedClock()
    async with running(tmp_path, settings=HTTP, clock=clock) as server, client_of(server) as client:
        await create_topic(client, "t")
        name = f"{PREFIX}totaltimems"
        labels = {"request": "CreateTopics", "quantile": "0.5"}
        for _ in range(3):  # each one period later
            assert value(await scrape(server), name, **labels) is not None
            clock.passed_ms += 60_000
        scraped = await scrape(server)
    assert value(scraped, name, **labels) is None
    assert value(scraped, f"{name}_count_total", request="CreateTopics") == 1


async def test_errors_are_counted_by_api(tmp_path):
    settings = HTTP | {"wirebroker.metrics.dialects": "strimzi,confluent"}
    async with running(tmp_path, settings=settings) as server, client_of(server) as client:
        await create_topic(client, "t")
        broken = batch(b"v")[:-1] + b"?"
        assert (await produce(client, "t", broken)).error_code == ErrorCode.CORRUPT_MESSAGE
        assert (await fetch(client, "t", 9)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        await client.ask(ApiKey.METADATA, 9, {"topics": [{"name": "none"}]})
        body = {"topic_names": ["none", "neither"], "timeout_ms": 30_000}
        await client.ask(ApiKey.DELETE_TOPICS, 4, body)
        body = {"topics": [{"name": "t", "num_partitions": 1, "replication_factor": 1}]}
        body["timeout_ms"] = 30_000
        await client.ask(ApiKey.CREATE_TOPICS, 5, body)
        scraped = await scrape(server)
    for metric in ("errors_total", "errorspersec"):
        counted = {
            (dict(labels)["request"], dict(labels)["error"]): count
            for (name, labels), count in scraped.items()
            if name == PREFIX + metric
        }
        assert counted == {
            ("Produce", "CORRUPT_MESSAGE"): 1,
            ("FetchConsumer", "OFFSET_OUT_OF_RANGE"): 1,
            ("Fetch", "OFFSET_OUT_OF_RANGE"): 1,
            ("Metadata", "UNKNOWN_TOPIC_OR_PARTITION"): 1,
            ("DeleteTopics", "UNKNOWN_TOPIC_OR_PARTITION"): 2,
            ("CreateTopics", "TOPIC_ALREADY_EXISTS"): 1,
        }


async def test_flush_and_log_cleaner_metrics_are_shown(tmp_path):
    settings = HTTP | {"wirebroker.durability": "fsync", "log.cleaner.backoff.ms": "1"}
    async with running(tmp_path, settings=settings) as server, client_of(server) as client:
        await create_topic(client, "t")
        await append(client, "t", batch(b"v"))
        compactor = server.compactor
        assert compactor is not None
        await until(lambda: compactor.figures.checked_s is not None)
        scraped = await scrape(server)
    flushes = "kafka_log_logflushstats_logflushrateandtimems"
    assert (value(scraped, f"{flushes}_count_total") or 0) >= 1
    assert (value(scraped, flushes, quantile="0.99") or 0) > 0
    manager = "kafka_log_logcleanermanager_"
    assert value(scraped, f"{manager}max_dirty_percent") == 0
    assert value(scraped, f"{manager}time_since_last_run_ms") is not None
    assert value(scraped, f"{manager}uncleanable_partitions_count", logDirectory=str(tmp_path)) == 0
    assert value(scraped, "kafka_log_logcleaner_deadthreadcount") == 0
