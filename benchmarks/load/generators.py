"""Load generators: raw requests over many connections (load.c), librdkafka, Kafka's own tools."""

from __future__ import annotations

import functools
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measurement.pairs import Sample
from tests.support.protocol.raw_client import request_frame
from tests.support.protocol.requests import fetch_request, produce_request
from tests.support.tools import tools
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.records.batch import build_batch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.support.brokers.brokers import Broker

_SOURCE = Path(__file__).parent / "generator" / "load.c"
# Flexible versions with topic names: both brokers accept the same bytes.
_PRODUCE_VERSION = 11
_FETCH_VERSION = 12


def produce_error_at(topic: str) -> int:
    # Correlation id, tags, topics, name, partitions, index; then the error code.
    return 4 + 1 + 1 + 1 + len(topic) + 1 + 4


def fetch_error_at(topic: str) -> int:
    # Correlation id, tags, throttle time, error, session, topics, name, partitions, index.
    return 4 + 1 + 4 + 2 + 4 + 1 + 1 + len(topic) + 1 + 4


def offsets_error_at(topic: str) -> int:
    # Of OffsetCommit and ListOffsets, not flexible: correlation id, throttle time, topics, name,
    # partitions, index.
    return 4 + 4 + 4 + 2 + len(topic) + 4 + 4


@functools.cache
def _load_program() -> str:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise tools.ToolError("the load generator needs a C compiler: install gcc or clang")
    program = Path(tempfile.mkdtemp(prefix="wirebroker-load-")) / "load"
    subprocess.run([compiler, "-O2", "-o", str(program), str(_SOURCE)], check=True)
    return str(program)


def drive(
    port: int,
    frames: Sequence[bytes],
    *,
    connections: int,
    seconds: float,
    error_at: int,
    sequence_at: int = -1,
) -> dict[str, float]:
    """Run load.c, which documents arguments and results.

    Raises:
        RuntimeError: It failed, or a response had an error code.
    """
    command = [_load_program(), str(port), str(connections), str(seconds), str(error_at)]
    command += [str(sequence_at)]
    done = subprocess.run(command, input=b"".join(frames), capture_output=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.decode().strip())
    return json.loads(done.stdout)


def raw_produce(
    broker: Broker,
    topic: str,
    *,
    connections: int,
    batch: bytes,
    records: int,
    acks: int = -1,
    partitions: int = 1,
    per_request: int = 1,
    seconds: float = 4.0,
) -> Sample:
    """Repeat a Produce request, one in flight on each connection.

    A request has a batch for each of `per_request` partitions; connections are spread over all.
    """
    frames: list[bytes] = []
    for first in range(0, partitions, per_request):
        named = {(topic, first + index): batch for index in range(per_request)}
        request = produce_request(named, acks=acks)
        frames.append(request_frame(ApiKey.PRODUCE, _PRODUCE_VERSION, request))
    error_at = produce_error_at(topic)
    result = drive(broker.port, frames, connections=connections, seconds=seconds, error_at=error_at)
    return Sample(result["requests"] * records * per_request, result["seconds"], latencies(result))


def raw_fetch(
    broker: Broker, topic: str, *, connections: int, max_bytes: int, seconds: float = 4.0
) -> Sample:
    """Repeat a fetch; a "record" here is a request.

    Raises:
        RuntimeError: Responses do not have the requested length.
    """
    request = fetch_request({(topic, 0): 0}, partition_max_bytes=max_bytes)
    frame = request_frame(ApiKey.FETCH, _FETCH_VERSION, request)
    error_at = fetch_error_at(topic)
    result = drive(
        broker.port, [frame], connections=connections, seconds=seconds, error_at=error_at
    )
    if not 0.9 * max_bytes < result["bytes"] / result["requests"] < 1.1 * max_bytes:
        raise RuntimeError(f"{topic} holds less than {max_bytes} bytes, or larger batches")
    return Sample(result["requests"], result["seconds"], latencies(result))


def one_batch(*, records: int, record_bytes: int, value: bytes | None = None) -> bytes:
    content = value if value is not None else bytes(range(256)) * (record_bytes // 256 + 1)
    return bytes(build_batch([(None, content[:record_bytes], ())] * records, timestamp_ms=-1))


def librdkafka(broker: Broker, topic: str, verb: str, options: Mapping[str, object]) -> Sample:
    settings = json.dumps({"bootstrap": broker.bootstrap, "topic": topic, **options})
    command = [sys.executable, "-m", "benchmarks.load.librdkafka_client", verb, settings]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    result = json.loads(done.stdout)
    return Sample(result["records"], result["seconds"])


def java_producer(
    broker: Broker,
    topic: str,
    *,
    records: int,
    record_bytes: int,
    properties: Mapping[str, str],
) -> Sample:
    """Run Kafka's ProducerPerformance; return its own rate, without the JVM's start."""
    arguments = ["--topic", topic, "--num-records", str(records)]
    arguments += ["--record-size", str(record_bytes), "--throughput", "-1"]
    arguments += ["--producer-props", f"bootstrap.servers={broker.bootstrap}"]
    arguments += [f"{name}={value}" for name, value in properties.items()]
    last = _java_tool("ProducerPerformance", arguments)[-1]
    rate = re.search(r"([\d.]+) records/sec", last)
    p99 = re.search(r"(\d+) ms 99th", last)
    assert rate is not None, last
    extra = {"p99_us": int(p99[1]) * 1000.0} if p99 else {}
    return Sample(records, records / float(rate[1]), extra)


def java_consumer(broker: Broker, topic: str, *, records: int) -> Sample:
    """Run Kafka's ConsumerPerformance; return the time since the first fetch."""
    arguments = ["--topic", topic, "--num-records", str(records), "--timeout", "60000"]
    arguments += ["--bootstrap-server", broker.bootstrap]
    lines = _java_tool("ConsumerPerformance", arguments)
    names = [name.strip() for name in lines[-2].split(",")]
    row = dict(zip(names, (value.strip() for value in lines[-1].split(",")), strict=True))
    consumed = int(row["data.consumed.in.nMsg"])
    return Sample(consumed, int(row["fetch.time.ms"]) / 1000)


def end_to_end_latency(broker: Broker, topic: str, *, records: int) -> Sample:
    """Run Kafka's EndToEndLatency: one record at a time."""
    arguments = ["--bootstrap-server", broker.bootstrap, "--topic", topic]
    arguments += ["--num-records", str(records), "--producer-acks", "all", "--record-size", "100"]
    text = "\n".join(_java_tool("EndToEndLatency", arguments))
    average = re.search(r"Avg latency: ([\d.]+) ms", text)
    tail = re.search(r"99th = (\d+)", text)
    assert average is not None, text
    assert tail is not None, text
    latency_s = float(average[1]) / 1000
    extra = {"average_us": latency_s * 1e6, "p99_us": int(tail[1]) * 1000.0}
    return Sample(records, records * latency_s, extra)


def _java_tool(name: str, arguments: Sequence[str]) -> list[str]:
    command = [tools.java_command(), "-Xmx512m", "-cp", tools.kafka_class_path()]
    command += [f"org.apache.kafka.tools.{name}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{name}: {(done.stderr or done.stdout).strip()[-500:]}")
    return done.stdout.strip().splitlines()


def latencies(result: Mapping[str, float]) -> dict[str, float]:
    return {name: result[name] for name in ("p50_us", "p99_us", "p999_us")}
