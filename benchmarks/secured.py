"""The cost of TLS and the authorizer, compared with Apache Kafka; and the precision of quotas.

    python -m benchmarks.secured [--pairs 3] [--ours CHECKOUT] [--only TEXT]

TLS 1.3 handshakes use an EC key of P-256, without resumption, with one request each. The TLS client
is Python's and shares the machine, so the broker's CPU is the primary figure. The authorizer, with
ACLs of 10,000 topics, is compared with our broker without one. Quotas are measured over 30 s with a
producer that offers twice its quota, after 120 s that use up its saved quota.
"""

from __future__ import annotations

import argparse
import socket
import statistics
import struct
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.cases import Case
from benchmarks.load import generators
from benchmarks.load.growth_requests import client_of
from benchmarks.measurement.brokers import SETTINGS, Checkout, apache_kafka, version
from benchmarks.measurement.machine import describe
from benchmarks.measurement.pairs import Sample, measure
from tests.support.protocol.raw_client import request_frame
from tests.support.protocol.requests import fetch_request, produce_request
from tests.support.security.tls_files import client_side, tls_configs
from tests.support.tools.ports import HOST, free_port
from wirebroker.codecs.acls import ALL_OPERATIONS, ALLOW, LITERAL, Operation, Resource
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.config.rows.authorizer import STANDARD

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from benchmarks.measurement.pairs import Pairs
    from tests.support.brokers.brokers import Broker
    from tests.support.protocol.raw_client import BlockingClient

_ACLS: Final = 10_000
_ACLS_IN_A_REQUEST: Final = 1_000
_QUOTA_BYTES_PER_S: Final = 2_000_000
# A new client may send ten seconds' worth immediately; by then that no longer counts.
_SAVED_UP_S: Final = 120.0
_QUOTA_S: Final = 30.0
_API_VERSIONS: Final = request_frame(ApiKey.API_VERSIONS, 0, {})


class TlsClients:
    def __init__(self, folder: Path) -> None:
        self._context = client_side(folder)
        self.port_of: dict[int, int] = {}

    def connect(self, broker: Broker) -> ssl.SSLSocket:
        sock = socket.create_connection((HOST, self.port_of[broker.port]), timeout=60)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._context.wrap_socket(sock, server_hostname="localhost")

    def handshakes(self, broker: Broker, _topic: str, *, threads: int, seconds: float) -> Sample:

        def once(_sock: ssl.SSLSocket | None) -> None:
            with self.connect(broker) as sock:
                _exchange(sock, _API_VERSIONS, bytearray(4096))

        return _in_threads(threads, seconds, lambda: None, once)

    def requests(self, broker: Broker, frame: bytes, *, connections: int, seconds: float) -> Sample:
        return _in_threads(
            connections,
            seconds,
            lambda: (self.connect(broker), bytearray(1 << 16)),
            lambda own: _exchange(own[0], frame, own[1]),
        )


def _exchange(sock: Any, frame: bytes, buffer: bytearray) -> None:
    sock.sendall(frame)
    view = memoryview(buffer)
    count = sock.recv_into(view)
    while count < 4:
        count += sock.recv_into(view[count:])
    remaining = struct.unpack_from(">i", buffer)[0] + 4 - count
    while remaining:
        count = sock.recv_into(view[: min(remaining, len(buffer))])
        if not count:
            raise RuntimeError("the broker has closed the connection")
        remaining -= count


def _in_threads(
    threads: int, seconds: float, begin: Callable[[], Any], work: Callable[[Any], None]
) -> Sample:
    def run(_number: int) -> int:
        own = begin()
        count = 0
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            work(own)
            count += 1
        if own is not None:
            own[0].close()
        return count

    began = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        total = sum(pool.map(run, range(threads)))
    return Sample(total, time.perf_counter() - began)


def tls_cases(clients: TlsClients, seconds: float) -> list[Case]:

    def produce(broker: Broker, topic: str, *, size: int, connections: int) -> Sample:
        batch = generators.one_batch(records=1, record_bytes=size)
        frame = request_frame(ApiKey.PRODUCE, 11, produce_request({(topic, 0): batch}))
        return clients.requests(broker, frame, connections=connections, seconds=seconds)

    def fetch(broker: Broker, topic: str, *, size: int, connections: int) -> Sample:
        body = fetch_request({(topic, 0): 0}, partition_max_bytes=size)
        frame = request_frame(ApiKey.FETCH, 12, body)
        return clients.requests(broker, frame, connections=connections, seconds=seconds)

    def fill(broker: Broker, topic: str) -> object:
        options = {"records": 20_000, "record_bytes": 1000, "config": {"batch.size": 16_384}}
        return generators.librdkafka(broker, topic, "produce", options)

    sizes = (("64 KiB", 65_536, 4), ("1 MiB", 1 << 20, 2))
    return [
        Case(
            "TLS handshakes, 4 at once",
            partial(clients.handshakes, threads=4, seconds=seconds),
            unit="handshake",
        ),
        *(
            Case(
                f"TLS produce {name}, {connections} connections",
                partial(produce, size=size - 2_000, connections=connections),
                unit="request",
            )
            for name, size, connections in sizes
        ),
        *(
            Case(
                f"TLS fetch {name}, {connections} connections",
                partial(fetch, size=size, connections=connections),
                fill=fill,
                unit="request",
            )
            for name, size, connections in sizes
        ),
    ]


def authorizer_case(seconds: float) -> Case:
    batch = generators.one_batch(records=1, record_bytes=100)
    drive = partial(
        generators.raw_produce, connections=200, batch=batch, records=1, seconds=seconds
    )
    return Case("authorizer compared with none: 100 B, 200 connections", drive, is_awake=True)


def _add_acls(broker: Broker) -> None:

    def rule(name: str, principal: str, operation: int) -> dict[str, Any]:
        return {
            "resource_type": Resource.TOPIC,
            "resource_name": name,
            "resource_pattern_type": LITERAL,
            "principal": principal,
            "host": "*",
            "operation": operation,
            "permission_type": ALLOW,
        }

    rules = [rule("*", "User:*", ALL_OPERATIONS)]
    rules += [rule(f"topic-{n}", f"User:user-{n}", Operation.WRITE) for n in range(_ACLS)]
    client = client_of(broker)
    for first in range(0, len(rules), _ACLS_IN_A_REQUEST):
        creations = rules[first : first + _ACLS_IN_A_REQUEST]
        answer = client.ask(ApiKey.CREATE_ACLS, 3, {"creations": creations})
        assert not any(result.error_code for result in answer.results)
    client.close()


def quota_deviation(broker: Broker) -> float:
    """Return by how many percent a producer that offers twice its quota exceeds it."""
    client = client_of(broker)
    op = {"key": "producer_byte_rate", "value": float(_QUOTA_BYTES_PER_S), "remove": False}
    entity = [{"entity_type": "client-id", "entity_name": None}]
    entries = [{"entity": entity, "ops": [op]}]
    request = {"entries": entries, "validate_only": False}
    assert not client.ask(ApiKey.ALTER_CLIENT_QUOTAS, 1, request).entries[0].error_code
    case = Case("quota", lambda *_: Sample(1, 1))
    topic = case.prepare(broker)
    batch = generators.one_batch(records=1, record_bytes=64_000)
    frame = request_frame(ApiKey.PRODUCE, 11, produce_request({(topic, 0): batch}))
    size = len(frame) - 4
    producer = client_of(broker)
    _produce_twice(producer, frame, _SAVED_UP_S)
    rate = _produce_twice(producer, frame, _QUOTA_S) * size
    producer.close()
    op["remove"] = True
    client.ask(ApiKey.ALTER_CLIENT_QUOTAS, 1, request)
    client.close()
    return (rate / _QUOTA_BYTES_PER_S - 1) * 100


def _produce_twice(client: BlockingClient, frame: bytes, seconds: float) -> float:
    pause_s = len(frame) / (2 * _QUOTA_BYTES_PER_S)
    began = next_s = time.perf_counter()
    count = 0
    while time.perf_counter() < began + seconds:
        asked_s = time.perf_counter()
        client.exchange(frame)
        count += 1
        # Do not make up for time in which it was throttled.
        next_s = max(next_s, asked_s) + pause_s
        time.sleep(max(0.0, next_s - time.perf_counter()))  # the pace of the load
    return count / (time.perf_counter() - began)


def _with_tls(broker: Any, folder: Path, clients: TlsClients) -> Broker:
    broker.port, secured = free_port(), free_port()
    clients.port_of[broker.port] = secured
    own = f"PLAINTEXT://{HOST}:{broker.port},SSL://{HOST}:{secured}"
    broker.settings |= tls_configs(folder)
    if isinstance(broker, Checkout):
        broker.settings["listeners"] = own
        return broker
    # It would set its own listeners without these.
    controller = free_port()
    protocols = "PLAINTEXT:PLAINTEXT,SSL:SSL,CONTROLLER:PLAINTEXT"
    broker.settings |= {"listener.security.protocol.map": protocols}
    broker.settings |= {"listeners": f"{own},CONTROLLER://{HOST}:{controller}"}
    broker.settings |= {"advertised.listeners": own}
    broker.settings["controller.quorum.voters"] = f"1@{HOST}:{controller}"
    names = {"process.roles": "broker,controller", "node.id": "1"}
    names |= {"controller.listener.names": "CONTROLLER", "log.dirs": str(broker.data_dir)}
    lines = (f"{name}={value}\n" for name, value in {**names, **broker.settings}.items())
    broker._properties.write_text("".join(lines))
    return broker


def _row(case: Case, pairs: Pairs) -> str:
    both = (pairs.ours, pairs.theirs)
    rates = [statistics.median(run.rate for run in runs) for runs in both]
    cpu_us = [statistics.median(run.cpu_us for run in runs) for runs in both]
    ratios = f"{pairs.cpu_ratio()} | {pairs.rate_ratio()}"
    return (
        f"| {case.name} | {rates[0]:,.0f} {case.unit}s/s | {rates[1]:,.0f} "
        f"| {cpu_us[0]:,.1f} us | {cpu_us[1]:,.1f} us | {ratios} |"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0, help="length of a run")
    parser.add_argument("--ours", type=Path, help="wirebroker checkout (default: this one)")
    parser.add_argument("--only", default="", help="cases with this in their name")
    options = parser.parse_args()
    print(f"{version(options.ours)}, {describe()}, {options.pairs} pairs\n")
    print("| case | ours | theirs | our CPU | theirs | CPU ratio | rate ratio |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |", flush=True)
    with tempfile.TemporaryDirectory(prefix="wirebroker-bench-") as name:
        folder = Path(name)
        _beside_kafka(folder, options)
        _beside_none(folder, options)
    return 0


def _beside_kafka(folder: Path, options: argparse.Namespace) -> None:
    clients = TlsClients(folder)
    cases = [c for c in tls_cases(clients, options.seconds) if options.only in c.name]
    has_quotas = options.only in "quota"
    if not cases and not has_quotas:
        return
    wirebroker = _with_tls(Checkout(folder / "ours", options.ours), folder / "tls", clients)
    kafka = _with_tls(apache_kafka(folder / "theirs"), folder / "tls", clients)
    try:
        wirebroker.start()
        kafka.start()
        for case in cases:
            print(_row(case, measure(case, wirebroker, kafka, options.pairs)), flush=True)
        if has_quotas:
            off = [quota_deviation(broker) for broker in (wirebroker, kafka)]
            print(f"| quota of 2 MB/s over 30 s | {off[0]:+.1f} % | {off[1]:+.1f} % | | | | |")
    finally:
        wirebroker.stop()
        kafka.stop()


def _beside_none(folder: Path, options: argparse.Namespace) -> None:
    case = authorizer_case(options.seconds)
    if options.only not in case.name:
        return
    rules = {"authorizer.class.name": STANDARD, "allow.everyone.if.no.acl.found": "true"}
    guarded = Checkout(folder / "guarded", options.ours, {**SETTINGS, **rules})
    free = Checkout(folder / "free", options.ours)
    try:
        guarded.start()
        free.start()
        _add_acls(guarded)
        print(_row(case, measure(case, guarded, free, options.pairs)), flush=True)
    finally:
        guarded.stop()
        free.stop()


if __name__ == "__main__":
    sys.exit(main())
