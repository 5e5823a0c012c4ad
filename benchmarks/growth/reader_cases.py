"""Kinds of growth of other clients: readers of old data, and waiting fetches."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import multiprocessing
import os
import resource
import socket
import statistics
import time
from typing import TYPE_CHECKING

from benchmarks.load import generators
from benchmarks.load.generators import fetch_error_at, produce_error_at
from benchmarks.load.growth_requests import (
    Point,
    client_of,
    cpu_us,
    create_topic,
    fetch_frame,
    latest,
    produce_frame,
)
from tests.support.protocol.raw_client import request_frame
from tests.support.protocol.requests import fetch_request, produce_request
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from multiprocessing.synchronize import Event
    from pathlib import Path

    from tests.support.brokers.brokers import Broker
    from tests.support.protocol.raw_client import BlockingClient

_DAY_MS = 86_400_000


def old_data(broker: Broker, *, quick: bool) -> Iterator[Point]:
    """Measure a tail reader's latency alone (size 1) and beside a reader of old data (size 2).

    The old data is repeatedly dropped from the page cache. Before that, measure how much of it
    repeated reads leave in the cache.
    """
    client = client_of(broker)
    create_topic(client, "o", segment_bytes=str(100 << 20))
    create_topic(client, "t")
    records = 200 if quick else 1_000
    big = generators.one_batch(records=1, record_bytes=1_000_000)
    old = produce_request({("o", 0): big})
    for _ in range(records):
        client.ask(ApiKey.PRODUCE, 11, old)
    frames = [fetch_frame("o", offset, 1 << 20) for offset in range(records)]
    _drop(broker.data_dir / "o-0")
    generators.drive(broker.port, frames, connections=1, seconds=3.0, error_at=fetch_error_at("o"))
    cached_mib = _resident_mib(list((broker.data_dir / "o-0").glob("*.log")))
    yield Point("old data in the page cache after a reader of", "MiB", records, cached_mib)
    rounds = 2_000 if quick else 20_000
    _tail_latencies(client, rounds)  # to warm up
    for size in (1, 2):
        with contextlib.ExitStack() as background:
            if size == 2:
                background.enter_context(_read_over_and_over(broker, "o", frames))
            latencies = _tail_latencies(client, rounds)
        cuts = statistics.quantiles(latencies, n=100)
        for name, value in (("p50", cuts[49]), ("p99", cuts[98])):
            yield Point(f"tail reader {name}, alone and beside old data", "us", size, value * 1e6)
    client.close()


def _tail_latencies(client: BlockingClient, rounds: int) -> list[float]:
    produce = produce_frame("t", 0)
    offset = 0
    answer = client.ask(ApiKey.LIST_OFFSETS, 1, latest("t"))
    offset = answer.topics[0].partitions[0].offset
    latencies: list[float] = []
    for number in range(rounds):
        fetch = fetch_frame("t", offset + number, 10_000)
        before = time.perf_counter()
        client.exchange(produce)
        client.exchange(fetch)
        latencies.append(time.perf_counter() - before)
    return latencies


@contextlib.contextmanager
def _read_over_and_over(broker: Broker, topic: str, frames: Sequence[bytes]) -> Iterator[None]:
    """Read a topic in one process, and drop its files from the page cache in another.

    Threads would block the tail reader for up to 5 ms at a time.
    """
    spawning = multiprocessing.get_context("spawn")
    folder = broker.data_dir / f"{topic}-0"
    has_begun = spawning.Event()
    processes = [
        spawning.Process(target=_evict, args=(folder,)),
        spawning.Process(target=_read, args=(broker.port, frames, has_begun)),
    ]
    for process in processes:
        process.start()
    try:
        assert has_begun.wait(60), "no reader has started"
        yield
    finally:
        for process in processes:
            process.terminate()
            process.join()


def _evict(folder: Path) -> None:
    while True:
        _drop(folder)
        time.sleep(0.1)  # dropping takes CPU time from the measured processes


def _drop(folder: Path) -> None:
    for path in folder.glob("*.log"):
        descriptor = os.open(path, os.O_RDONLY)
        os.fdatasync(descriptor)  # dirty pages are not dropped
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def _read(port: int, frames: Sequence[bytes], has_begun: Event) -> None:
    while True:
        generators.drive(port, frames, connections=1, seconds=0.5, error_at=fetch_error_at("o"))
        has_begun.set()


def _resident_mib(paths: Sequence[Path]) -> float:
    libc = ctypes.CDLL(None, use_errno=True)
    pages = 0
    for path in paths:
        size = path.stat().st_size
        if not size:
            continue
        with path.open("rb") as file, mmap.mmap(file.fileno(), size, mmap.MAP_PRIVATE) as memory:
            states = (ctypes.c_ubyte * (-(-size // mmap.PAGESIZE)))()
            # ctypes needs a writable mapping, which a private one is.
            address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
            if libc.mincore(ctypes.c_void_p(address), ctypes.c_size_t(size), states) != 0:
                raise OSError(ctypes.get_errno(), "mincore")
            pages += sum(state & 1 for state in states)
    return pages * mmap.PAGESIZE / (1 << 20)


def waiting(broker: Broker, *, quick: bool) -> Iterator[Point]:
    """Measure small appends to a partition with waiting fetches, and with closed ones."""
    client = client_of(broker)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    sizes = (1, 10, 100, 1_000) if quick else (1, 10, 100, 1_000, 5_000)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 2 * max(sizes))), hard))
    for state in ("closed", "waiting"):
        for size in sizes:
            topic = f"{state}-{size}"  # empty, so that fetches wait
            create_topic(client, topic)
            peers = [_wait_for_much(broker, topic) for _ in range(size)]
            if state == "closed":
                for peer in peers:
                    peer.close()
            client.ask(ApiKey.METADATA, 9, {"topics": []})  # after all fetches
            error_at = produce_error_at(topic)
            frames = [produce_frame(topic, 0)]
            value = cpu_us(broker, frames, error_at, quick=quick, connections=1)
            yield Point(f"produce 100 B beside {state} fetches", "us of CPU", size, value)
            for peer in peers:
                peer.close()
    client.close()


def _wait_for_much(broker: Broker, topic: str) -> socket.socket:
    peer = socket.create_connection(("127.0.0.1", broker.port))
    request = fetch_request({(topic, 0): 0}, max_wait_ms=_DAY_MS, min_bytes=50 << 20)
    peer.sendall(request_frame(ApiKey.FETCH, 12, request))
    return peer


KINDS: dict[str, Callable[..., Iterator[Point]]] = {
    "old data": old_data,
    "waiting": waiting,
}
