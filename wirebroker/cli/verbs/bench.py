"""`wirebroker bench`."""

from __future__ import annotations

import asyncio
import itertools
import random
import sys
from typing import TYPE_CHECKING, Any, Final

import click

from wirebroker.base.clock import pause
from wirebroker.cli.plumbing.flags import compression_flag
from wirebroker.cli.plumbing.running import ClusterFlags, cluster_flags, run_verb
from wirebroker.client.records.consuming import PartitionsReader
from wirebroker.client.records.load import LoadPlan, LoadWriter
from wirebroker.client.records.load_meter import LoadMeter
from wirebroker.client.topics.leaders import offsets_at, partitions_of
from wirebroker.client.topics.topics import create_topics, delete_topics
from wirebroker.codecs.special_offsets import EARLIEST, LATEST

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Unpack

    from wirebroker.cli.plumbing.output import Output
    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.client.records.load_meter import LoadFigures
    from wirebroker.client.topics.leaders import TopicPartition
    from wirebroker.codecs.records.codec import Codec
    from wirebroker.codecs.records.record import Record

_WINDOW_S: Final = 0.5
_BARS: Final = "▁▂▃▄▅▆▇█"
_PLOT_WIDTH: Final = 60
# Generating more would slow the measurement.
_DIFFERENT_VALUES: Final = 64


@click.command()
@click.option(
    "-n",
    "--count",
    type=click.IntRange(1),
    default=100_000,
    metavar="N",
    help="Number of records. [default: 100000]",
)
@click.option(
    "-s",
    "--size",
    type=click.IntRange(1, 1 << 20),
    default=1000,
    metavar="BYTES",
    help="Size of each value. [default: 1000]",
)
@compression_flag
@click.option(
    "-p",
    "--partitions",
    type=click.IntRange(1, 1000),
    default=3,
    metavar="N",
    help="Partitions of the temporary topic. [default: 3]",
)
@click.option(
    "-r",
    "--replicas",
    type=click.IntRange(1),
    metavar="N",
    help="Replicas of each partition. [default: the brokers' default.replication.factor]",
)
@click.option(
    "--batch",
    "batch_bytes",
    type=click.IntRange(1, 1 << 20),
    default=64 << 10,
    metavar="BYTES",
    help="Size of the values in a batch. [default: 65536]",
)
@click.option(
    "--in-flight",
    type=click.IntRange(1, 1000),
    default=10,
    metavar="N",
    help="Batches in flight at a time. [default: 10]",
)
@click.option(
    "--acks",
    type=click.Choice(["1", "all"]),
    default="all",
    help="Acknowledgments to wait for. [default: all]",
)
@click.option("--rate", type=click.FloatRange(1), metavar="N", help="Maximum records per second.")
@click.option("--keep", is_flag=True, help="Keep the topic.")
@cluster_flags
def bench(
    *,
    count: int,
    size: int,
    codec: Codec,
    partitions: int,
    replicas: int | None,
    batch_bytes: int,
    in_flight: int,
    acks: str,
    rate: float | None,
    keep: bool,
    **flags: Unpack[ClusterFlags],
) -> int:
    """Measure throughput: write records to a temporary topic and read them back.

    The result includes this client, which is a single Python process.
    """
    topic = f"wirebroker-bench-{random.randrange(1 << 32):08x}"  # noqa: S311
    plan = LoadPlan(
        topic,
        count,
        max(1, batch_bytes // size),
        in_flight,
        codec,
        1 if acks == "1" else -1,
        rate,
    )

    async def work(client: KafkaClient, out: Output) -> None:
        await create_topics(
            client, {topic: partitions}, replication_factor=replicas or -1, configs={}
        )
        try:
            rows = [await _written(client, plan, _values(size)), await _read(client, plan)]
        except BaseException:
            if not keep:
                await delete_topics(client, [topic])
            raise
        if not keep:
            await delete_topics(client, [topic])
        _show(out, topic, rows)

    return run_verb(flags, work)


def _values(size: int) -> Iterator[bytes]:
    """Yield values endlessly; half of each is compressible."""
    chance = random.Random(1)  # noqa: S311 - the same each time
    half = size // 2
    values = [chance.randbytes(size - half) + bytes(half) for _ in range(_DIFFERENT_VALUES)]
    return itertools.cycle(values)


class _Run:
    def __init__(self, client: KafkaClient, operation: str, count: int) -> None:
        self.meter = LoadMeter(client.clock.monotonic())
        self.rates: list[float] = []
        self._client = client
        self._operation = operation
        self._count = count
        self._tells = sys.stderr.isatty()

    async def watch(self) -> None:
        """Record rates, and show progress on a terminal."""
        while True:
            await pause(_WINDOW_S)
            self.note()
            if self._tells:
                share = self.meter.records / self._count
                text = f"\r{self._operation} {share:4.0%}  {self.rates[-1]:,.0f} records/s "
                click.echo(text, err=True, nl=False)

    def note(self) -> None:
        self.rates.append(self.meter.window(self._client.clock.monotonic()).records_per_s)

    def row(self) -> dict[str, Any]:
        if self._tells:
            click.echo("\r\x1b[K", err=True, nl=False)
        figures: LoadFigures = self.meter.total(self._client.clock.monotonic())
        if not self.rates:
            self.note()
        p50, p99 = self.meter.percentiles_ms(0.5, 0.99)
        return {
            "what": self._operation,
            "records": figures.records,
            "seconds": round(figures.seconds, 3),
            "records_per_s": round(figures.records_per_s),
            "mib_per_s": round(figures.megabytes_per_s, 1),
            "p50_ms": round(p50, 1),
            "p99_ms": round(p99, 1),
            "most_ms": round(figures.most_ms, 1),
            "rates": [round(rate) for rate in self.rates],
        }


async def _watched(run: _Run, work: Any) -> dict[str, Any]:
    watching = asyncio.create_task(run.watch())
    try:
        await work
    finally:
        watching.cancel()
    return run.row()


async def _written(client: KafkaClient, plan: LoadPlan, values: Iterator[bytes]) -> dict[str, Any]:
    run = _Run(client, "write", plan.records)
    return await _watched(run, LoadWriter(client, plan, run.meter.add).run(values))


async def _read(client: KafkaClient, plan: LoadPlan) -> dict[str, Any]:
    topic_partitions = list(await partitions_of(client, [plan.topic]))
    starts = await offsets_at(client, dict.fromkeys(topic_partitions, EARLIEST))
    ends = await offsets_at(client, dict.fromkeys(topic_partitions, LATEST))
    run = _Run(client, "read", plan.records)
    last = client.clock.monotonic()

    def take(topic_partition: TopicPartition, records: list[Record]) -> bool:
        nonlocal last
        del topic_partition
        now = client.clock.monotonic()
        run.meter.add(len(records), sum(len(record.value or b"") for record in records), now - last)
        last = now
        return True

    return await _watched(run, PartitionsReader(client, starts, take, until=ends).run())


def _show(out: Output, topic: str, rows: list[dict[str, Any]]) -> None:
    columns = ["what", "records", "seconds", "records_per_s", "mib_per_s"]
    columns += ["p50_ms", "p99_ms", "most_ms"]
    plots = [f"{row['what']:5}  {_plot(row['rates'])}  records/s over time" for row in rows]
    out.show({"topic": topic, "runs": rows}, [*out.table(rows, columns), "", *plots])


def _plot(rates: list[int]) -> str:
    """Draw rates as bars from 0 to the highest; adjacent ones are merged if there are many."""
    step = -(-len(rates) // _PLOT_WIDTH)
    averages = [sum(rates[at : at + step]) / step for at in range(0, len(rates), step)]
    highest = max(averages) or 1
    return "".join(
        _BARS[min(len(_BARS) - 1, int(rate / highest * len(_BARS)))] for rate in averages
    )
