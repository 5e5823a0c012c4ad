"""Instructions of the broker's process per request, over real sockets, counted by valgrind.

    python -m benchmarks.paths.instructions --ours .venv/compiled --against ../other/.venv/compiled

Counts vary by less than 1 % even on a busy machine, so small changes show. They exclude the kernel
and waits. Each case runs twice, with few and with many rounds; the difference, without starts, is
divided by the requests. In a round each connection sends one request, then all responses are read.

Needs valgrind (Debian: the package of that name). 45 s per case and checkout.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from benchmarks.growth.growth_cases import find_coordinator, join
from benchmarks.load.generators import fetch_error_at, offsets_error_at, produce_error_at
from benchmarks.load.growth_requests import client_of, create_topic
from benchmarks.measurement.brokers import SETTINGS, Checkout, of_checkout, version
from tests.support.brokers.brokers import Wirebroker
from tests.support.protocol.raw_client import request_frame
from tests.support.protocol.requests import fetch_request, produce_request
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.records.batch import build_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.support.brokers.brokers import Broker

_TOPIC: Final = "t"
_STAMP_MS: Final = 1_700_000_000_000
_FILLED_BATCHES: Final = 80
_FEW_ROUNDS: Final = 5


class Case(NamedTuple):
    """A case.

    Attributes:
        rounds: The difference between the two runs.
        frames: Returns a frame for each connection, or one for all, given a running broker.
        error_at: Position of the error code in a response.
    """

    name: str
    connections: int
    rounds: int
    frames: Callable[[Broker], list[bytes]]
    error_at: int


class _Counted(Checkout):
    def __init__(self, directory: Path, checkout: Path) -> None:
        super().__init__(directory, checkout, SETTINGS)
        self._counts = directory / "counts"

    def _command(self) -> list[str]:
        valgrind = ["valgrind", "--tool=cachegrind", "--cache-sim=no"]
        valgrind.append(f"--cachegrind-out-file={self._counts.absolute()}")
        return of_checkout([*valgrind, *Wirebroker._command(self)], self._checkout)

    def instructions(self) -> int:
        counts = self._counts.read_text(encoding="utf-8")
        summary = re.search(r"^summary: (\d+)", counts, re.MULTILINE)
        assert summary, "valgrind has written no summary"
        return int(summary[1])


def _batch(size: int, timestamp_ms: int = -1) -> bytes:
    return bytes(build_batch([(None, bytes(size), ())], timestamp_ms=timestamp_ms))


def _produce(_broker: Broker) -> list[bytes]:
    return [request_frame(ApiKey.PRODUCE, 11, produce_request({(_TOPIC, 0): _batch(100)}))]


def _fill(broker: Broker) -> None:
    client = client_of(broker)
    request = produce_request({(_TOPIC, 0): _batch(60_000, _STAMP_MS)})
    for _ in range(_FILLED_BATCHES):
        answer = client.ask(ApiKey.PRODUCE, 11, request)
        assert answer.responses[0].partition_responses[0].error_code == 0, answer
    client.close()


def _fetch(size: int) -> Callable[[Broker], list[bytes]]:
    def frames(broker: Broker) -> list[bytes]:
        _fill(broker)
        request = fetch_request({(_TOPIC, 0): 0}, partition_max_bytes=size)
        return [request_frame(ApiKey.FETCH, 12, request)]

    return frames


def _list_offsets(broker: Broker) -> list[bytes]:
    _fill(broker)
    partition = {"partition_index": 0, "timestamp": _STAMP_MS}
    topics = [{"name": _TOPIC, "partitions": [partition]}]
    return [request_frame(ApiKey.LIST_OFFSETS, 5, {"replica_id": -1, "topics": topics})]


def _commit(broker: Broker) -> list[bytes]:
    client = client_of(broker)
    find_coordinator(client)
    frames = [join(client, _TOPIC, f"group-{number}")[0] for number in range(20)]
    client.close()
    return frames


_PRODUCED: Final = produce_error_at(_TOPIC)
_FETCHED: Final = fetch_error_at(_TOPIC)
_OFFSETS: Final = offsets_error_at(_TOPIC)
CASES: Final = (
    Case("produce 100 B, 50 connections", 50, 100, _produce, _PRODUCED),
    Case("produce 100 B, 1 connection", 1, 4000, _produce, _PRODUCED),
    Case("fetch 1 KiB, 20 connections", 20, 200, _fetch(1 << 10), _FETCHED),
    Case("fetch 64 KiB, 4 connections", 4, 200, _fetch(64 << 10), _FETCHED),
    Case("fetch 1 MiB, 2 connections", 2, 200, _fetch(1 << 20), _FETCHED),
    Case("OffsetCommit, 20 connections", 20, 100, _commit, _OFFSETS),
    Case("ListOffsets by time, 20 connections", 20, 100, _list_offsets, _OFFSETS),
)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ours", type=Path, default=Path(), help="checkout, or compiled tree")
    parser.add_argument("--against", type=Path, help="another one to compare")
    parser.add_argument("--only", default="", help="cases with this in their name")
    options = parser.parse_args()
    checkouts = [options.ours, *([options.against] if options.against else [])]
    for checkout in checkouts:
        print(f"{checkout}: {version(checkout)}")
    for line in _lines(checkouts, options.only):
        print(line, flush=True)
    return 0


def _lines(checkouts: Sequence[Path], only: str) -> Iterator[str]:
    yield "\n| instructions a request | " + " | ".join(map(str, checkouts)) + " | ratio |"
    yield "| --- |" + " ---: |" * (len(checkouts) + 1)
    for case in CASES:
        if only in case.name:
            counts = [_a_request(case, checkout) for checkout in checkouts]
            columns = " | ".join(f"{count:,.0f}" for count in counts)
            yield f"| {case.name} | {columns} | {counts[-1] / counts[0]:.2f} |"


def _a_request(case: Case, checkout: Path) -> float:
    short_run = _instructions(case, checkout, _FEW_ROUNDS)
    long_run = _instructions(case, checkout, _FEW_ROUNDS + case.rounds)
    return (long_run - short_run) / (case.rounds * case.connections)


def _instructions(case: Case, checkout: Path, rounds: int) -> int:
    with tempfile.TemporaryDirectory(prefix="wirebroker-bench-") as name, ExitStack() as stack:
        broker = _Counted(Path(name) / "broker", checkout)
        broker.start()
        stack.callback(broker.stop)
        client = client_of(broker)
        create_topic(client, _TOPIC)
        client.close()
        frames = case.frames(broker)
        frames *= case.connections // len(frames)
        clients = [client_of(broker) for _ in frames]
        for _ in range(rounds):
            for client, frame in zip(clients, frames, strict=True):
                client.push(frame)
            for client in clients:
                answer = client.read_frame()
                code = answer[case.error_at : case.error_at + 2]
                assert code == b"\x00\x00", f"{case.name}: error {code.hex()}"
        for client in clients:
            client.close()
        broker.stop()
        return broker.instructions()


if __name__ == "__main__":
    sys.exit(main())
