"""A producer's latency with and without compaction of another topic, in turns.

    python -m benchmarks.scenarios.compaction_latency [--megabytes 200] [--rounds 3] [--rate 200]

A topic is filled with records of few keys. A producer on another topic sends `rate` records a
second, one at a time with acks=all, and measures each response. In each round it does so without
compaction, then with it (the minimum dirty ratio is lowered and raised again).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.brokers.brokers import Wirebroker
from tests.support.protocol.raw_client import RawClient, request_frame
from tests.support.protocol.requests import create_topic, produce, produce_request
from tests.support.records.batches import batch
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.storage.checkpoints import CLEANER_CHECKPOINT, read_offsets
from wirebroker.storage.files import Files

if TYPE_CHECKING:
    from collections.abc import Callable

BATCH_RECORDS = 100
VALUE_BYTES = 200
KEYS = 1000
IDLE_S = 10.0
NEVER, ALWAYS = "1", "0.01"
PRODUCE_VERSION = 9


class Probe:
    def __init__(self, address: tuple[str, int], rate: float) -> None:
        self._socket = socket.create_connection(address)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._interval_s = 1 / rate
        request = produce_request({("probe", 0): batch(b"x" * 100)})
        self._frame = request_frame(ApiKey.PRODUCE, PRODUCE_VERSION, request)

    def run(self, is_over: Callable[[], bool]) -> list[float]:
        latencies: list[float] = []
        next_send = time.monotonic()
        while not is_over():
            next_send += self._interval_s
            time.sleep(max(0.0, next_send - time.monotonic()))  # the pace of the load
            sent = time.monotonic()
            self._socket.sendall(self._frame)
            self._receive(int.from_bytes(self._receive(4)))
            latencies.append((time.monotonic() - sent) * 1000)
            next_send = max(next_send, time.monotonic() - self._interval_s)
        return latencies

    def _receive(self, count: int) -> bytes:
        received = b""
        while len(received) < count:
            received += self._socket.recv(count - len(received))
        return received


async def fill(address: tuple[str, int], megabytes: int) -> int:
    client = await RawClient.connect(address)
    count = 0
    while count * VALUE_BYTES < megabytes << 20:
        pieces = [
            batch(
                *[os.urandom(VALUE_BYTES // 2) * 2] * BATCH_RECORDS, key=b"key-%d" % (number % KEYS)
            )
            for number in range(count, count + 10)
        ]
        for piece in pieces:
            assert (await produce(client, "filled", piece)).error_code == 0
            count += BATCH_RECORDS
    await client.close()
    return count


async def set_ratio(address: tuple[str, int], ratio: str) -> None:
    client = await RawClient.connect(address)
    configs = [{"name": "min.cleanable.dirty.ratio", "config_operation": 0, "value": ratio}]
    resources = [{"resource_type": 2, "resource_name": "filled", "configs": configs}]
    request = {"resources": resources, "validate_only": False}
    answer = await client.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)
    assert answer.responses[0].error_code == 0
    await client.close()


async def create_topics(address: tuple[str, int]) -> None:
    client = await RawClient.connect(address)
    await create_topic(
        client,
        "filled",
        cleanup_policy="compact",
        segment_bytes=str(32 << 20),
        min_cleanable_dirty_ratio=NEVER,
        file_delete_delay_ms="1000",
    )
    await create_topic(client, "probe")
    await client.close()


def shown(latencies: list[float]) -> str:
    ordered = sorted(latencies)
    p99 = ordered[int(len(ordered) * 0.99)]
    return (
        f"{len(ordered):6d} responses, median {ordered[len(ordered) // 2]:6.2f} ms, "
        f"p99 {p99:6.2f} ms, slowest {ordered[-1]:6.2f} ms"
    )


def is_past(deadline: float) -> bool:
    return time.monotonic() > deadline


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rate", type=float, default=200)
    options = parser.parse_args()
    idle: list[float] = []
    busy: list[float] = []
    with tempfile.TemporaryDirectory(prefix="compaction-", dir=Path.cwd()) as directory:
        broker = Wirebroker(Path(directory), {"log.cleaner.backoff.ms": "200"})
        broker.start()
        try:
            address = ("127.0.0.1", broker.port)
            asyncio.run(create_topics(address))
            probe = Probe(address, options.rate)
            checkpoint = str(broker.data_dir / CLEANER_CHECKPOINT)

            def cleaned() -> int:
                return read_offsets(Files(), checkpoint).get(("filled", 0), 0)

            def is_cleaned_beyond(offset: int) -> bool:
                return cleaned() > offset

            for _ in range(options.rounds):
                asyncio.run(fill(address, options.megabytes))
                began, before = time.monotonic(), cleaned()
                idle += probe.run(partial(is_past, began + IDLE_S))
                began = time.monotonic()
                asyncio.run(set_ratio(address, ALWAYS))
                busy += probe.run(partial(is_cleaned_beyond, before))
                print(f"compacted in {time.monotonic() - began:.1f} s")
                asyncio.run(set_ratio(address, NEVER))
        finally:
            broker.stop()
    print(f"alone:        {shown(idle)}")
    print(f"compaction:   {shown(busy)}")


if __name__ == "__main__":
    main()
