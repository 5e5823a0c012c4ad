"""The cost of replication if bytes are only received, written and forwarded.

    python -m benchmarks.scenarios.replicated_floor [--seconds 3] [--bytes 65103] [--connections 4]
        [--runs 3]

The leader, a process, writes the producers' bytes to a file and forwards them from there (sendfile)
to two others, which write them to theirs; each confirms with a byte, and the producer sends the
next request. Nothing is parsed or checked. Prints the CPU of all three per request, and the
kernel's part (to 10 ms), to compare with `python -m benchmarks.cluster produce`.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import selectors
import socket
import tempfile
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from benchmarks.measurement.machine import TickedTimes, cpu_seconds, describe

if TYPE_CHECKING:
    from collections.abc import Sequence

_FOLLOWERS: Final = 2
_WARM_S: Final = 1.0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--bytes", type=int, default=65_103, help="request size")
    parser.add_argument("--connections", type=int, default=4)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    print(describe())
    for _ in range(options.runs):
        with tempfile.TemporaryDirectory() as folder:
            cost = measure(Path(folder), options.seconds, options.bytes, options.connections)
        print(
            f"{cost.rate:,.0f} requests/s, {cost.cpu_us:.0f} us CPU of all three per request, "
            f"{cost.kernel_us:.0f} of it in the kernel",
            flush=True,
        )


class Cost(NamedTuple):
    """Requests a second; microseconds per request of all processes, and of the kernel."""

    rate: float
    cpu_us: float
    kernel_us: float


def measure(folder: Path, seconds: float, size: int, connections: int) -> Cost:
    producers = [_connected() for _ in range(connections)]
    followers = [_connected() for _ in range(_FOLLOWERS)]
    fork = multiprocessing.get_context("fork")
    processes = [
        fork.Process(target=_follow, args=(folder / f"follower-{number}", server_end, size))
        for number, (_, server_end) in enumerate(followers)
    ]
    to_producers = [server_end for _, server_end in producers]
    to_followers = [client_end for client_end, _ in followers]
    leading = (folder / "leader", to_producers, to_followers, size)
    processes.append(fork.Process(target=_lead, args=leading))
    for process in processes:
        process.start()
    try:
        return _produce([client_end for client_end, _ in producers], size, seconds, _ids(processes))
    finally:
        for process in processes:
            process.kill()
            process.join()
        for pair in producers + followers:
            pair[0].close()
            pair[1].close()


def _ids(processes: Sequence[multiprocessing.process.BaseProcess]) -> list[int]:
    return [process.pid for process in processes if process.pid is not None]


def _connected() -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        client_end = socket.create_connection(server.getsockname())
        server_end, _ = server.accept()
    for end in (client_end, server_end):
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client_end, server_end


def _receive(source: socket.socket, into: memoryview) -> None:
    done = 0
    while done < len(into):
        got = source.recv_into(into[done:])
        if not got:
            raise SystemExit  # the others have ended
        done += got


def _follow(path: Path, leader: socket.socket, size: int) -> None:
    into = memoryview(bytearray(size))
    with path.open("wb", buffering=0) as log:
        while True:
            _receive(leader, into)
            log.write(into)
            leader.sendall(b"1")


def _lead(
    path: Path, producers: list[socket.socket], followers: list[socket.socket], size: int
) -> None:
    into = memoryview(bytearray(size))
    waiting: deque[socket.socket] = deque()
    acknowledged = dict.fromkeys(followers, 0)
    end = notified = 0
    with selectors.DefaultSelector() as selector, path.open("w+b", buffering=0) as log:
        for connection in producers + followers:
            selector.register(connection, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                ready = key.fileobj
                assert isinstance(ready, socket.socket)
                if ready in acknowledged:
                    acknowledged[ready] += len(ready.recv(4096))
                    continue
                _receive(ready, into)
                log.write(into)
                waiting.append(ready)
                for follower in followers:
                    _send_on(log.fileno(), follower, end, size)
                end += size
            while notified < min(acknowledged.values()):
                waiting.popleft().sendall(b"1")
                notified += 1


def _send_on(log: int, follower: socket.socket, position: int, length: int) -> None:
    while length:
        sent = os.sendfile(follower.fileno(), log, position, length)
        position, length = position + sent, length - sent


def _produce(
    leaders: list[socket.socket], size: int, seconds: float, process_ids: list[int]
) -> Cost:
    request = bytes(size)
    count = 0
    with selectors.DefaultSelector() as selector:
        for leader in leaders:
            selector.register(leader, selectors.EVENT_READ)
            leader.sendall(request)
        warm_until = time.perf_counter() + _WARM_S
        while time.perf_counter() < warm_until:
            _answer(selector, request)
        began, used = time.perf_counter(), sum(map(cpu_seconds, process_ids))
        kernels = sum(map(_kernel_seconds, process_ids))
        while time.perf_counter() < began + seconds:
            count += _answer(selector, request)
        elapsed = time.perf_counter() - began
    used, kernels = (
        sum(map(of_process, process_ids)) - before
        for of_process, before in ((cpu_seconds, used), (_kernel_seconds, kernels))
    )
    return Cost(count / elapsed, used / count * 1e6, kernels / count * 1e6)


def _kernel_seconds(process_id: int) -> float:
    return TickedTimes.of(process_id).kernel_s


def _answer(selector: selectors.BaseSelector, request: bytes) -> int:
    ready = selector.select()
    for key, _ in ready:
        leader = key.fileobj
        assert isinstance(leader, socket.socket)
        leader.recv(1)
        leader.sendall(request)
    return len(ready)


if __name__ == "__main__":
    main()
