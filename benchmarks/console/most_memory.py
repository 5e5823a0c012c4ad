"""Measure the largest memory of a console whose users read as much as it allows.

    python -m benchmarks.console.most_memory [--partitions 10000] [--groups 1000] [--seconds 20]
        [--ours .venv/compiled]

Eight searches and four downloads run at once, by five users, while ten viewers have pages open:
first of small records, then of the largest batches that the console reads, 16 MiB each, as a single
record and as many. The programs that download read as fast as they can, or a little in every
second. In the last phase, twenty tails read a topic while it is written. Prints the largest memory
of each phase.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from benchmarks.console.broker import fill, read_arguments, serving, write_orders
from benchmarks.console.site_cost import ConsoleSite, Viewer, running_site
from benchmarks.measurement.machine import peak_mb, reset_peak
from wirebroker.base.clock import SystemClock
from wirebroker.client.topics.topics import create_topics
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.records.batch import build_batch
from wirebroker.codecs.records.codec import Codec
from wirebroker.console.model.settings import cluster_of_flag, open_client
from wirebroker.console.web.stream_limit import STREAM_LIMITS

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.codecs.records.record import Headers

_ORDERS: Final = "orders"
# By topic: the size of each value, and how many are in a batch.
_LARGE: Final = {"one-large-record": (16_000_000, 1), "many-records": (200, 60_000)}
_BATCHES: Final = 24
_VIEWERS: Final = 10
_USERS: Final = 5
_SLOW_BYTES: Final = 64 << 10


class Reader(threading.Thread):
    """A search, a download or a tail, repeated until it must end."""

    def __init__(self, site: ConsoleSite, cookie: str, path: str, *, is_slow: bool = False) -> None:
        super().__init__(daemon=True)
        self._site = site
        self._cookie = cookie
        self._path = path
        self._is_slow = is_slow
        self.ending = threading.Event()
        self.read_bytes = 0

    def run(self) -> None:
        """Read the stream again and again."""
        while not self.ending.is_set():
            connection = self._site.connect()
            connection.request("GET", self._path, headers={"Cookie": self._cookie})
            response = connection.getresponse()
            if response.status == 503:  # a stream of the phase before is still open
                connection.close()
                self.ending.wait(0.1)
                continue
            assert response.status == 200, (response.status, response.read())
            while (data := response.read1(_SLOW_BYTES)) and not self.ending.is_set():
                self.read_bytes += len(data)
                if self._is_slow:
                    self.ending.wait(1.0)
            connection.close()


async def _write_large(client: KafkaClient, topic: str) -> None:
    size, count = _LARGE[topic]
    configs = {"max.message.bytes": "20000000"}
    await create_topics(client, {topic: 3}, configs=configs)
    now_ms = int(time.time() * 1000)  # noqa: TID251
    value = b"x" * (size - 10)
    for number in range(_BATCHES):
        records: list[tuple[bytes | None, bytes, Headers]] = [
            (None, value + b"%010d" % entry, []) for entry in range(count)
        ]
        batch = build_batch(records, timestamp_ms=now_ms + number, codec=Codec.ZSTD)
        data = [{"index": number % 3, "records": batch}]
        topic_data = [{"name": topic, "partition_data": data}]
        body = {"acks": 1, "timeout_ms": 10_000, "topic_data": topic_data}
        written = await client.request_of(1, ApiKey.PRODUCE, body, at_most=12)
        (row,) = written.responses[0].partition_responses
        assert row.error_code == 0, row


async def _fill(address: str, arguments: argparse.Namespace) -> None:
    async with open_client(cluster_of_flag(f"fill={address}"), SystemClock()) as client:
        await fill(client, arguments.partitions, arguments.groups)
        await create_topics(client, {_ORDERS: 3}, configs={})
        await write_orders(client, _ORDERS, 200_000, Codec.NONE)
        for topic in _LARGE:
            await _write_large(client, topic)


async def _write_orders(address: str, seconds: float) -> None:
    async with open_client(cluster_of_flag(f"write={address}"), SystemClock()) as client:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while True:
                    await write_orders(client, _ORDERS, 50_000, Codec.NONE)


def _measure(
    label: str, site: ConsoleSite, readers: list[Reader], wait: Callable[[], object]
) -> None:
    """Measure while `wait` runs."""
    reset_peak(site.process_id)
    for reader in readers:
        reader.start()
    wait()
    for reader in readers:
        reader.ending.set()
    most = peak_mb(site.process_id)
    read = sum(reader.read_bytes for reader in readers) >> 20
    print(f"{label:34} at most {most:4.0f} MiB, {read:6,} MiB read", flush=True)
    for reader in readers:
        reader.join()


def _readers(site: ConsoleSite, cookies: list[str], topic: str, *, is_slow: bool) -> list[Reader]:
    searched = urlencode({"name": topic, "text": "no such text"})
    loaded = urlencode({"name": topic, "start": "start", "form": "jsonl"})
    paths = [f"search?{searched}"] * STREAM_LIMITS["search"]
    paths += [f"download?{loaded}"] * STREAM_LIMITS["download"]
    return [
        Reader(site, cookies[number % _USERS], f"/c/scale/topic/{path}", is_slow=is_slow)
        for number, path in enumerate(paths)
    ]


def main() -> None:
    arguments = read_arguments(__doc__)
    settings = {"message.max.bytes": "20000000", "socket.request.max.bytes": "100000000"}
    with serving(arguments.ours, settings) as (address, _):
        asyncio.run(_fill(address, arguments))
        print(f"{arguments.partitions} partitions, {arguments.groups} groups")
        with running_site(address, "http://127.0.0.1:9/metrics") as site:
            viewers = [Viewer(site, number) for number in range(_VIEWERS)]
            for viewer in viewers:
                viewer.start()
            cookies = [site.log_in(f"viewer{number}") for number in range(_USERS)]
            wait = partial(time.sleep, arguments.seconds)
            _measure("ten viewers", site, [], wait)
            for topic in (_ORDERS, *_LARGE):
                for pace in ("fast", "slow"):
                    readers = _readers(site, cookies, topic, is_slow=pace == "slow")
                    _measure(f"{topic}, {pace} readers", site, readers, wait)
            tails = [
                Reader(site, cookies[number % _USERS], f"/c/scale/topic/tail?name={_ORDERS}")
                for number in range(STREAM_LIMITS["tail"])
            ]
            writing = _write_orders(address, arguments.seconds)
            _measure("tails", site, tails, lambda: asyncio.run(writing))


if __name__ == "__main__":
    main()
