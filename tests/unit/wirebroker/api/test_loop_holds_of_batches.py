"""Limits the work of each turn of the event loop for large batches (see test_loop_holds.py)."""

from __future__ import annotations

import os

import pytest

from tests.support.harness.request_sizes import EIGHTH, LARGEST
from tests.support.protocol.raw_client import BlockingClient, answer_of, request_frame
from tests.support.protocol.requests import produce_request
from tests.support.records.batches import batch
from tests.transcripts.raw_records import batch_of, record
from tests.unit.wirebroker.api.loop_holds_kit import (
    MOST_RECORDS,
    garbage,
    is_measured,
    new_topic,
    nightly,
    smallest_records,
    watched_broker,
)
from wirebroker.codecs.api_keys import ApiKey

# Fixtures for the whole module.
__all__ = ["garbage", "is_measured"]


@pytest.fixture(scope="module")
def broker(tmp_path_factory, garbage, is_measured):
    directory = tmp_path_factory.mktemp("data")
    sizes = LARGEST if is_measured else EIGHTH
    with watched_broker(directory, garbage, sizes, is_measured=is_measured) as watched:
        yield watched


@pytest.mark.parametrize("codec", [*nightly("none"), "zstd"])
def test_a_batch_of_very_many_records(broker, codec):
    name = f"many-records-{codec}"
    broker.create([new_topic(name, 1)])
    data = batch_of(*smallest_records(broker.sizes.of(MOST_RECORDS)), codec=codec)
    answer = broker.ask(ApiKey.PRODUCE, 12, produce_request({(name, 0): data}))
    assert {result.error_code for result in answer.responses[0].partition_responses} == {0}


def bomb(codec: str, size: int) -> bytes:
    """Return a small batch of one record that unpacks to this many bytes."""
    return batch_of(record("x" * size), codec=codec)


@pytest.mark.parametrize("codec", [*nightly("gzip", "lz4"), "zstd"])
def test_a_small_batch_that_unpacks_to_a_very_large_one(broker, codec):
    name = f"bombs-{codec}"
    broker.create([new_topic(name, 1)])
    records = {(name, 0): bomb(codec, broker.sizes.of(100 << 20))}
    answer = broker.ask(ApiKey.PRODUCE, 12, produce_request(records))
    assert {result.error_code for result in answer.responses[0].partition_responses} == {0}


def test_small_batch_that_unpacks_beyond_the_limit(broker):
    broker.create([new_topic("too-large", 1)])
    smallest = smallest_records(broker.sizes.of(MOST_RECORDS))
    data = batch_of(*smallest, record("x" * (129 << 20), offset=len(smallest)), codec="zstd")
    answer = broker.ask(ApiKey.PRODUCE, 12, produce_request({("too-large", 0): data}))
    assert {result.error_code for result in answer.responses[0].partition_responses} == {10}


@pytest.mark.parametrize("size", [*nightly(1 << 20), 2 << 20])
def test_a_request_of_many_batches_that_unpack_to_large_ones(broker, size):
    name = f"small-bombs-{size}"
    broker.create([new_topic(name, 100)])
    data = bomb("gzip", broker.sizes.of(size))
    records = {(name, index): data for index in range(100)}
    answer = broker.ask(ApiKey.PRODUCE, 12, produce_request(records))
    assert {result.error_code for result in answer.responses[0].partition_responses} == {0}


def test_a_request_of_many_batches_of_many_records(broker):
    broker.create([new_topic("many-batches", 100)])
    data = batch_of(*smallest_records(broker.sizes.of(2_500)))
    records = {("many-batches", index): data for index in range(100)}
    answer = broker.ask(ApiKey.PRODUCE, 12, produce_request(records))
    assert {result.error_code for result in answer.responses[0].partition_responses} == {0}


@pytest.mark.parametrize("target", [*nightly("gzip", "lz4"), "zstd"])
def test_a_batch_that_is_recompressed(broker, target):
    name = f"recompressed-{target}"
    broker.create([new_topic(name, 1, compression_type=target)])
    smallest = smallest_records(broker.sizes.of(MOST_RECORDS))
    last = record("x" * broker.sizes.of(50 << 20), offset=len(smallest))
    data = batch_of(*smallest, last, codec="snappy")
    answer = broker.ask(ApiKey.PRODUCE, 12, produce_request({(name, 0): data}))
    assert {result.error_code for result in answer.responses[0].partition_responses} <= {0, 10}


def test_very_many_records_that_are_refused(broker):
    broker.create([new_topic("refused", 1, cleanup_policy="compact")])
    data = batch_of(*smallest_records(broker.sizes.of(MOST_RECORDS)), codec="zstd")
    answer = broker.ask(ApiKey.PRODUCE, 12, produce_request({("refused", 0): data}))
    (result,) = answer.responses[0].partition_responses
    assert result.error_code == 87
    assert len(result.record_errors) == broker.sizes.of(4096)


def test_very_many_records_that_are_refused_in_many_partitions(broker):
    count = broker.sizes.of(300)
    broker.create([new_topic("all-refused", count, cleanup_policy="compact")])
    data = batch_of(*smallest_records(broker.sizes.of(5_000)), codec="zstd")
    records = {("all-refused", index): data for index in range(count)}
    answer = broker.ask(ApiKey.PRODUCE, 12, produce_request(records))
    results = answer.responses[0].partition_responses
    assert {(result.error_code, bool(result.error_message)) for result in results} == {(87, True)}
    assert sum(len(result.record_errors) for result in results) == broker.sizes.of(4096)


@pytest.mark.parametrize("codec", [*nightly("none"), "gzip"])
def test_a_record_of_very_many_headers(broker, codec):
    name = f"many-headers-{codec}"
    broker.create([new_topic(name, 1)])
    data = batch_of(record(headers=[("", None)] * broker.sizes.of(400_000)), codec=codec)
    answer = broker.ask(ApiKey.PRODUCE, 12, produce_request({(name, 0): data}))
    assert {result.error_code for result in answer.responses[0].partition_responses} == {0}


def test_very_long_frame_does_not_block_the_loop(broker):
    size = broker.sizes.of(90 << 20)
    broker.create([new_topic("huge", 1, max_message_bytes=str(100 << 20))])
    value = os.urandom(1 << 20) * (size >> 20)
    frame = request_frame(ApiKey.PRODUCE, 9, produce_request({("huge", 0): batch(value)}))
    versions = request_frame(ApiKey.API_VERSIONS, 0, {})
    other = BlockingClient(broker.server.address)

    def send() -> None:
        part = broker.sizes.of(10 << 20)
        for begin in range(0, len(frame), part):
            broker.client.push(frame[begin : begin + part])
            other.exchange(versions)
        answer = answer_of(ApiKey.PRODUCE, 9, broker.client.read_frame())
        assert answer.responses[0].partition_responses[0].error_code == 0

    broker.assert_short(send)
    other.close()
