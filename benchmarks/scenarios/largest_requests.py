"""Effects of the largest requests: a second client's longest wait, and the broker's memory.

    python -m benchmarks.scenarios.largest_requests [--elements 400000] [--only OFFSET_FETCH]
        [--apache]

Every array of every request is filled in three ways: with a repeated element, with as many
different ones, and with long names. Then 150 clients send expensive requests at the same time.
Meanwhile a second client sends ApiVersions every 5 ms. The status is 1 if a request needed more
memory than a container of 1.2 GB has, or the broker ended.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.measurement.machine import peak_mb, reset_peak, resident_mb
from tests.support.brokers.brokers import Wirebroker, make_broker
from tests.support.brokers.furnished_broker import furnish
from tests.support.protocol.raw_client import BlockingClient, request_frame
from tests.support.protocol.request_arrays import Place, at_or_none, places, renamed
from tests.support.protocol.requests import produce_request
from tests.support.protocol.sample_requests import GROUP, TOPIC, with_elements
from tests.support.tools.ports import HOST
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.records.batch import build_batch
from wirebroker.codecs.records.codec import Codec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.brokers.brokers import Broker

PARTITIONS = 200
# Names of 32 KB, 32 MB in all.
_LONG, _LONG_COUNT = 32_000, 1_000
_PAUSE_S = 0.005
# A container of 1.2 GB without a broker of 60 MB.
_MOST_MIB = 1_100
_SHOWN = 12
CLOSED = "closed"
_PATIENCE_S = 120.0
_CROWD, _ROUNDS = 150, 3
_MOMENT_MS = 1_700_000_000_000


class Cost(NamedTuple):
    request: str
    frame_mb: float
    seconds: float
    answer: str  # its size, or "closed"
    longest_wait_ms: float  # of the second client
    peak_mib: float  # of the broker, above its previous size
    retained_mib: float  # after the client has disconnected


class SecondClient:
    """A thread that sends ApiVersions every 5 ms."""

    def __init__(self, port: int) -> None:
        self._client = BlockingClient((HOST, port), timeout_s=_PATIENCE_S)
        self._frame = request_frame(ApiKey.API_VERSIONS, 0, {})
        self._ended = threading.Event()
        self._longest_s = 0.0
        self._thread = threading.Thread(target=self._ask)

    def __enter__(self) -> SecondClient:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._client.close()

    def _ask(self) -> None:
        while not self._ended.wait(_PAUSE_S):
            began = time.perf_counter()
            self._client.exchange(self._frame)
            self._longest_s = max(self._longest_s, time.perf_counter() - began)

    @property
    def longest_ms(self) -> float:
        return 1000 * self._longest_s


def elements_of(element: Any, variation: str, count: int) -> list[Any]:
    """Return an array's elements; none if the way does not apply to them."""
    if variation == "repeated":
        return [element] * count
    if variation == "many":
        return [renamed(element, number) for number in range(count)]
    if renamed(element, 0, length=_LONG) == renamed(element, 0):
        return []
    return [renamed(element, number, length=_LONG) for number in range(min(count, _LONG_COUNT))]


def cost_of(port: int, process_id: int, name: str, frame: bytes) -> Cost:
    before = resident_mb(process_id)
    reset_peak(process_id)
    with SecondClient(port) as second:
        began = time.perf_counter()
        client = BlockingClient((HOST, port), timeout_s=_PATIENCE_S)
        with contextlib.closing(client):
            try:
                answer = f"{len(client.exchange(frame)) / 1e6:.1f} MB"
            except (AssertionError, ConnectionError):
                answer = CLOSED
        seconds = time.perf_counter() - began
    peak = peak_mb(process_id) - before
    retained = resident_mb(process_id) - before
    return Cost(name, len(frame) / 1e6, seconds, answer, second.longest_ms, peak, retained)


def crowd(port: int, process_id: int, name: str, frame: bytes) -> Cost:
    before = resident_mb(process_id)
    reset_peak(process_id)
    clients = [BlockingClient((HOST, port), timeout_s=_PATIENCE_S) for _ in range(_CROWD)]
    answer_bytes = 0
    with contextlib.ExitStack() as stack, SecondClient(port) as second:
        for client in clients:
            stack.callback(client.close)
        began = time.perf_counter()
        for _ in range(_ROUNDS):
            for client in clients:
                client.push(frame)
            answer_bytes += sum(len(client.read_frame()) for client in clients)
        seconds = time.perf_counter() - began
    peak = peak_mb(process_id) - before
    answer = f"{answer_bytes / 1e6:.1f} MB"
    name = f"{name}, {_CROWD} clients x {_ROUNDS}"
    retained = resident_mb(process_id) - before
    sent = _CROWD * _ROUNDS * len(frame) / 1e6
    return Cost(name, sent, seconds, answer, second.longest_ms, peak, retained)


def crowds(port: int) -> Iterator[tuple[str, bytes]]:
    records = [(None, b"x" * 90, ())] * 2_000
    batch = bytes(build_batch(records, timestamp_ms=_MOMENT_MS, codec=Codec.ZSTD))
    with contextlib.closing(BlockingClient((HOST, port))) as client:
        for _ in range(5):
            client.ask(
                ApiKey.PRODUCE,
                12,
                produce_request({(TOPIC, index): batch for index in range(PARTITIONS)}),
            )
    rows = [{"partition_index": n, "timestamp": _MOMENT_MS} for n in range(PARTITIONS)]
    offsets = {"replica_id": -1, "topics": [{"name": TOPIC, "partitions": rows}]}
    yield "ListOffsets by time", request_frame(ApiKey.LIST_OFFSETS, 7, offsets)
    partitions = [{"partition_index": n} for n in range(PARTITIONS)]
    deleted = {"group_id": GROUP, "topics": [{"name": TOPIC, "partitions": partitions}]}
    yield "OffsetDelete", request_frame(ApiKey.OFFSET_DELETE, 0, deleted)


def table(costs: list[Cost]) -> str:
    lines = [
        f"{'wait ms':>8} {'peak MiB':>8} {'kept MiB':>8} {'s':>6} {'request':>8} {'response':>9}"
    ]
    lines += [
        f"{cost.longest_wait_ms:8.0f} {cost.peak_mib:8.0f} {cost.retained_mib:8.0f} "
        f"{cost.seconds:6.2f} {cost.frame_mb:5.1f} MB {cost.answer:>9}  {cost.request}"
        for cost in costs
    ]
    return "\n".join(lines)


def measure(kind: str, count: int, only: str) -> list[Cost]:
    costs: list[Cost] = []
    with tempfile.TemporaryDirectory(prefix="wirebroker-largest-") as folder:
        settings = {
            "auto.create.topics.enable": "false",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.num.partitions": "1",
        }
        with make_broker(kind, Path(folder), settings) as broker:
            setup = BlockingClient((HOST, broker.port))
            with contextlib.closing(setup):
                samples = furnish(setup, PARTITIONS)
            for array_field in [
                array_field for array_field in places() if only in array_field.key.name
            ]:
                print(f"{array_field} ...", file=sys.stderr)
                body = samples.body(array_field.key, array_field.version)
                for variation in (
                    ("repeated", "many", "long") if at_or_none(body, array_field.path) else ()
                ):
                    costs += _largest(broker, array_field, body, variation, count)
            for name, frame in () if only else crowds(broker.port):
                print(f"{name} ...", file=sys.stderr)
                costs.append(crowd(broker.port, broker.process_id, name, frame))
            if isinstance(broker, Wirebroker):
                print(f"{resident_mb(broker.process_id):.0f} MiB at the end")
    return costs


def _largest(
    broker: Broker, array_field: Place, body: dict[str, Any], variation: str, count: int
) -> Iterator[Cost]:
    """Halve the number of elements until the broker responds."""
    (element,) = at_or_none(body, array_field.path)
    while count:
        elements = elements_of(element, variation, count)
        if not elements:
            return
        filled = with_elements(body, array_field.path, elements)
        frame = request_frame(array_field.key, array_field.version, filled)
        name = f"{array_field} {variation} x {len(elements):,}"
        cost = cost_of(broker.port, broker.process_id, name, frame)
        yield cost
        if cost.answer != CLOSED:
            return
        count = len(elements) // 2


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--elements", type=int, default=400_000)
    parser.add_argument("--only", default="", help="API keys with this in their name")
    parser.add_argument("--apache", action="store_true", help="measure Apache Kafka instead")
    options = parser.parse_args()
    kind = "apache" if options.apache else "wirebroker"
    costs = measure(kind, options.elements, options.only)
    print(f"{len(costs)} requests of up to {options.elements:,} elements, {kind}")
    print("the longest waits of a second client:")
    print(table(sorted(costs, key=lambda cost: -cost.longest_wait_ms)[:_SHOWN]))
    print("the largest peaks of memory:")
    print(table(sorted(costs, key=lambda cost: -cost.peak_mib)[:_SHOWN]))
    print("the most memory kept afterwards:")
    print(table(sorted(costs, key=lambda cost: -cost.retained_mib)[:_SHOWN]))
    return int(max(cost.peak_mib for cost in costs) > _MOST_MIB)


if __name__ == "__main__":
    sys.exit(main())
