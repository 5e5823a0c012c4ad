"""CPU of a leader's own code per replicated request, without sockets or generators.

    python -m benchmarks.paths.replicated_path [--producers 200] [--bytes 100] [--partitions 1]
        [--against CHECKOUT]

A broker in this process leads partitions with three replicas. Producers (acks=all, one request in
flight) and two followers use connections in memory; their own cost of about 2 us per record counts
as well. The figure is the least of many short rounds, by the thread's CPU clock; `--against` runs
another checkout in turn.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
_ROUND_RECORDS = 4_000
_ROUNDS_IN_A_PROCESS = 8
_REPLICAS = (1, 2, 3)
_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
# Placeholders for the fields that change between Fetch requests.
_OFFSET, _SESSION, _EPOCH = 0x1122334455660000, 0x27182818, 0x31415926
# Of a Fetch response, after size, correlation id, tags, throttle time and error.
_SESSION_AT = 4 + 4 + 1 + 4 + 2


class Line:
    """A client's connection, which reads responses immediately."""

    def __init__(self, table: Any) -> None:
        from wirebroker.net.memory_transport import MemoryTransport

        self._transport = MemoryTransport(table.loop, self._changed)
        self._answer = bytearray()
        table.adopt(
            self._transport, remote=("memory", 0), local=("memory", 1), listener_name="PLAINTEXT"
        )

    def send(self, frame: bytes | bytearray) -> None:
        self._transport.incoming += frame
        self._transport.changed()

    def _changed(self) -> None:
        answer = self._answer
        answer += self._transport.take()
        if len(answer) >= 4 and len(answer) == 4 + int.from_bytes(answer[:4]):
            self._answer = bytearray()
            self.answered(answer)

    def answered(self, answer: bytearray) -> None:
        raise NotImplementedError


class Producer(Line):
    """A producer that repeats a request until the round is complete."""

    def __init__(self, table: Any, frame: bytes, round_: Round) -> None:
        super().__init__(table)
        self._frame = frame
        self._round = round_

    def begin(self) -> None:
        if self._round.may_send():
            self.send(self._frame)

    def answered(self, answer: bytearray) -> None:
        del answer
        self._round.note_answer()
        self.begin()


class Follower(Line):
    """A follower that fetches from the current log end."""

    def __init__(self, table: Any, frame: bytes, logs: list[Any]) -> None:
        super().__init__(table)
        self._frame = bytearray(frame)
        self._at = [frame.index(mark.to_bytes(4)) for mark in (_SESSION, _EPOCH)]
        self._logs = [
            (frame.index((_OFFSET + index).to_bytes(8)), log) for index, log in enumerate(logs)
        ]
        self._epoch = 0

    def fetch(self, session: bytes = bytes(4)) -> None:
        session_at, epoch_at = self._at
        frame = self._frame
        for offset_at, log in self._logs:
            frame[offset_at : offset_at + 8] = log.log_end_offset.to_bytes(8)
        frame[session_at : session_at + 4] = session
        frame[epoch_at : epoch_at + 4] = self._epoch.to_bytes(4)
        self.send(frame)

    def answered(self, answer: bytearray) -> None:
        assert answer[_SESSION_AT - 2 : _SESSION_AT] == bytes(2), "an error"
        self._epoch += 1
        self.fetch(bytes(answer[_SESSION_AT : _SESSION_AT + 4]))


class Round:
    """A number of records, sent by all producers together."""

    def __init__(self) -> None:
        self._unsent = 0
        self._unanswered = 0
        self._done = asyncio.Event()

    async def run(self, producers: list[Producer], records: int) -> None:
        self._unsent = self._unanswered = records
        self._done.clear()
        for producer in producers:
            producer.begin()
        await self._done.wait()

    def may_send(self) -> bool:
        self._unsent -= 1
        return self._unsent >= 0

    def note_answer(self) -> None:
        self._unanswered -= 1
        if not self._unanswered:
            self._done.set()


async def measure(producers: int, record_bytes: int, partitions: int) -> float:
    from tests.support.brokers.servers import broker_of, client_of, running
    from tests.support.protocol.requests import create_topic
    from tests.support.replicas.roles import lead
    from wirebroker.api.registry import REGISTRY
    from wirebroker.base.clock import SystemClock
    from wirebroker.net.connection_table import ConnectionTable
    from wirebroker.net.dispatch import Dispatcher
    from wirebroker.net.settings import NetworkSettings

    with tempfile.TemporaryDirectory(dir=_MEMORY, prefix="wirebroker-bench-") as directory:
        async with running(Path(directory)) as server, client_of(server) as client:
            await create_topic(client, "t", partitions)
            broker = broker_of(server)
            led = list(broker.replicas.find("t", b"", by_id=False)[0].values())
            for partition in led:
                lead(partition, replicas=_REPLICAS)
            table = ConnectionTable(
                loop=asyncio.get_running_loop(),
                dispatch=Dispatcher(broker, REGISTRY),
                clock=SystemClock(),
                settings=NetworkSettings(),
            )
            for replica in _REPLICAS[1:]:
                Follower(
                    table, _fetch_frame(led, replica), [partition.log for partition in led]
                ).fetch()
            round_ = Round()
            frame = _produce_frame(record_bytes, partitions)
            clients = [Producer(table, frame, round_) for _ in range(producers)]
            await round_.run(clients, 4 * producers)
            rounds: list[float] = []
            for _ in range(_ROUNDS_IN_A_PROCESS):
                began = time.thread_time()
                await round_.run(clients, _ROUND_RECORDS)
                rounds.append((time.thread_time() - began) / _ROUND_RECORDS)
            await table.close(grace_s=0)
            for partition in led:
                lead(partition)  # otherwise the stop would use an old epoch
            return min(rounds) * 1e6


def _produce_frame(record_bytes: int, partitions: int) -> bytes:
    from tests.support.protocol.raw_client import request_frame
    from tests.support.protocol.requests import produce_request
    from wirebroker.codecs.api_keys import ApiKey
    from wirebroker.codecs.records.batch import build_batch

    batch = bytes(build_batch([(None, b"x" * record_bytes, ())], timestamp_ms=-1))
    named = {("t", index): batch for index in range(partitions)}
    return request_frame(ApiKey.PRODUCE, 11, produce_request(named))


def _fetch_frame(partitions: list[Any], replica: int) -> bytes:
    from tests.support.protocol.raw_client import request_frame
    from wirebroker.codecs.api_keys import ApiKey

    rows = [
        {
            "partition": partition.index,
            "current_leader_epoch": partition.leader_epoch,
            "fetch_offset": _OFFSET + index,
            "last_fetched_epoch": -1,
            "log_start_offset": 0,
            "partition_max_bytes": 1 << 20,
        }
        for index, partition in enumerate(partitions)
    ]
    request = {
        "replica_state": {"replica_id": replica, "replica_epoch": -1},
        "max_wait_ms": 500,
        "min_bytes": 1,
        "max_bytes": 10 << 20,
        "session_id": _SESSION,
        "session_epoch": _EPOCH,
        "topics": [{"topic_id": partitions[0].topic_id, "partitions": rows}],
        "forgotten_topics_data": [],
    }
    return request_frame(ApiKey.FETCH, 17, request)


def _in_a_process(checkout: Path, options: argparse.Namespace) -> float:
    environment = {**os.environ, "PYTHONPATH": str(checkout.absolute())}
    command = [sys.executable, str(Path(__file__).resolve()), "--one"]
    for name in ("producers", "bytes", "partitions"):
        command += [f"--{name}", str(getattr(options, name))]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return float(done.stdout)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--producers", type=int, default=200)
    parser.add_argument("--bytes", type=int, default=100, help="record size")
    parser.add_argument("--partitions", type=int, default=1, help="per request")
    parser.add_argument("--against", type=Path, metavar="CHECKOUT", help="alternate with it")
    parser.add_argument("--rounds", type=int, default=3, help="processes of each checkout")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(asyncio.run(measure(options.producers, options.bytes, options.partitions)))
        return 0
    checkouts = [ROOT, *([options.against] if options.against else [])]
    times: list[list[float]] = [[] for _ in checkouts]
    for _ in range(options.rounds):
        for checkout, checkout_times in zip(checkouts, times, strict=True):
            checkout_times.append(_in_a_process(checkout, options))
    medians = [statistics.median(checkout_times) for checkout_times in times]
    print(*(f"{value:8.2f} us per request" for value in medians), end="")
    print(f"   theirs / ours {medians[1] / medians[0]:.2f}" if len(medians) == 2 else "")
    return 0


if __name__ == "__main__":
    sys.exit(main())
