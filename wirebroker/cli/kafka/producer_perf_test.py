"""`wirebroker kafka-producer-perf-test`."""

from __future__ import annotations

import asyncio
import itertools
import random
from typing import TYPE_CHECKING, Any, Final

import click

from wirebroker.base.clock import pause
from wirebroker.cli.kafka.plumbing.properties import client_properties
from wirebroker.cli.kafka.plumbing.script import (
    ScriptCommand,
    ScriptFlags,
    run_script,
    version_flag,
)
from wirebroker.cli.plumbing.completed_names import TOPIC_NAME
from wirebroker.cli.plumbing.file_path import FilePath
from wirebroker.cli.plumbing.flags import codec_named
from wirebroker.client.records.load import LoadPlan, LoadWriter
from wirebroker.client.records.load_meter import LoadMeter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from wirebroker.cli.plumbing.output import Output
    from wirebroker.client.kafka_client import KafkaClient

_DEFAULT_BATCH_BYTES: Final = 16_384
_DEFAULT_IN_FLIGHT: Final = 5
_SHARES: Final = (0.5, 0.95, 0.99, 0.999)
_LISTS: Final = ("--producer-props", "--command-property")


class _ListsCommand(ScriptCommand):
    """A command whose flags take several values."""

    takes_repeats = True

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Repeat a flag before each of its values."""
        full_args: list[str] = []
        flag: str | None = None
        for argument in args:
            if argument.startswith("--"):
                flag = argument if argument in _LISTS else None
                full_args += [] if flag else [argument]
            else:
                full_args += [flag, argument] if flag else [argument]
        return super().parse_args(ctx, full_args)


@click.command(cls=_ListsCommand)
@click.option("--topic", required=True, type=TOPIC_NAME, metavar="TOPIC", help="Topic to write to.")
@click.option(
    "--num-records", type=click.IntRange(1), required=True, metavar="N", help="Number of records."
)
@click.option("--record-size", type=click.IntRange(1), metavar="BYTES", help="Size of each record.")
@click.option(
    "--payload-file",
    type=FilePath(exists=True, dir_okay=False),
    metavar="FILE",
    help="File with the values to send, instead of --record-size.",
)
@click.option(
    "--payload-delimiter",
    default="\\n",
    metavar="TEXT",
    help="Delimiter between values in the file.",
)
@click.option("--payload-monotonic", is_flag=True, help="Send increasing numbers from 0 as values.")
@click.option(
    "--throughput",
    type=float,
    required=True,
    metavar="N",
    help="Maximum records a second; -1: no limit.",
)
@click.option(
    "--producer-props",
    "--command-property",
    "properties",
    multiple=True,
    metavar="KEY=VALUE...",
    help="bootstrap.servers, acks, batch.size, compression.type,"
    " max.in.flight.requests.per.connection; others have no effect.",
)
@click.option(
    "--command-config",
    "--producer.config",
    "file",
    type=FilePath(exists=True, dir_okay=False),
    metavar="FILE",
    help="File with producer properties.",
)
@click.option("--bootstrap-server", metavar="HOST:PORT,...", help="Brokers to connect to.")
@click.option(
    "--reporting-interval",
    type=click.IntRange(1),
    default=5000,
    metavar="MS",
    help="Interval of progress lines. [default: 5000]",
)
@click.option("--print-metrics", is_flag=True, help="Has no effect.")
@version_flag
def kafka_producer_perf_test(
    *,
    topic: str,
    num_records: int,
    record_size: int | None,
    payload_file: Path | None,
    payload_delimiter: str,
    payload_monotonic: bool,
    throughput: float,
    properties: tuple[str, ...],
    file: Path | None,
    bootstrap_server: str | None,
    reporting_interval: int,
    print_metrics: bool,
) -> int:
    """Measure the throughput of a producer, as kafka-producer-perf-test.sh."""
    del print_metrics
    if [record_size is not None, payload_file is not None, payload_monotonic].count(True) != 1:
        raise click.UsageError("give one of --record-size, --payload-file, --payload-monotonic")
    producer_properties = client_properties(file, properties)
    servers = bootstrap_server or producer_properties.get("bootstrap.servers")
    if servers is None:
        raise click.UsageError("name a broker by --bootstrap-server or bootstrap.servers")
    values, size = _values(record_size, payload_file, payload_delimiter)
    plan = _plan(topic, num_records, throughput, producer_properties, size)

    async def work(client: KafkaClient, out: Output) -> None:
        meter = LoadMeter(client.clock.monotonic())
        report_task = asyncio.create_task(_tell(client, out, meter, reporting_interval / 1000))
        try:
            await LoadWriter(client, plan, meter.add).run(values)
        finally:
            report_task.cancel()
        total = meter.total(client.clock.monotonic())
        p50, p95, p99, p999 = map(round, meter.percentiles_ms(*_SHARES))
        out.line(
            f"{total.records} records sent, {total.records_per_s:.1f} records/sec"
            f" ({total.megabytes_per_s:.2f} MB/sec), {total.mean_ms:.2f} ms avg latency,"
            f" {total.most_ms:.2f} ms max latency, {p50} ms 50th, {p95} ms 95th, {p99} ms 99th,"
            f" {p999} ms 99.9th."
        )

    flags = ScriptFlags(bootstrap_server=servers, command_config=file)
    return run_script(flags, work, failed=str, to_stderr=True)


def _plan(
    topic: str, count: int, throughput: float, producer_properties: dict[str, str], size: int
) -> LoadPlan:
    def number(name: str, otherwise: int) -> int:
        text = producer_properties.get(name, f"{otherwise}")
        if not text.isdecimal():
            raise click.UsageError(f"{name}={text} is no number")
        return max(1, int(text))

    codec = codec_named(producer_properties.get("compression.type", "none"))
    in_flight = number("max.in.flight.requests.per.connection", _DEFAULT_IN_FLIGHT)
    return LoadPlan(
        topic,
        count,
        max(1, number("batch.size", _DEFAULT_BATCH_BYTES) // size),
        in_flight,
        codec,
        1 if producer_properties.get("acks") == "1" else -1,
        throughput if throughput > 0 else None,
    )


def _values(size: int | None, file: Path | None, delimiter: str) -> tuple[Iterator[bytes], int]:
    chance = random.Random(0)  # noqa: S311 - the same each time
    if size is not None:
        letters = bytes(range(ord("A"), ord("Z") + 1))
        value = bytes(chance.choices(letters, k=size))
        return itertools.repeat(value), size
    if file is not None:
        between = delimiter.replace("\\n", "\n").replace("\\t", "\t").encode()
        payloads = [payload for payload in file.read_bytes().split(between) if payload]
        if not payloads:
            raise click.UsageError(f"{file} is empty")
        chosen: Any = iter(lambda: chance.choice(payloads), None)
        return chosen, sum(map(len, payloads)) // len(payloads) or 1
    return (b"%d" % number for number in itertools.count()), 8


async def _tell(client: KafkaClient, out: Output, meter: LoadMeter, interval_s: float) -> None:
    while True:
        await pause(interval_s)
        figures = meter.window(client.clock.monotonic())
        out.line(
            f"{figures.records} records sent, {figures.records_per_s:.1f} records/sec"
            f" ({figures.megabytes_per_s:.2f} MB/sec), {figures.mean_ms:.1f} ms avg latency,"
            f" {figures.most_ms:.1f} ms max latency."
        )
