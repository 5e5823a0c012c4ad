"""How fast a console searches a topic.

    python -m benchmarks.console.search_speed [--records N] [--codec NONE] [--ours .venv/compiled]

Writes records of 200 bytes and searches all of them. Prints records a second, the time to the
first hit, the CPU of the console for a million records, and its largest memory.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import time
from typing import TYPE_CHECKING

from benchmarks.console.broker import add_checkout, serving, write_orders
from benchmarks.measurement.machine import cpu_seconds
from wirebroker.base.clock import SystemClock
from wirebroker.client.topics.topics import create_topics
from wirebroker.codecs.records.codec import Codec
from wirebroker.console.model.collector import Collector
from wirebroker.console.model.settings import cluster_of_flag
from wirebroker.console.records.downloads import download
from wirebroker.console.records.queries import SearchQuery
from wirebroker.console.records.search import search

if TYPE_CHECKING:
    from wirebroker.console.records.queries import SearchProgress

_TOPIC = "orders"


def _queries(count: int) -> dict[str, SearchQuery]:
    late = count * 9 // 10
    return {
        "text, no hit": SearchQuery(_TOPIC, text="no such text"),
        "text, one hit": SearchQuery(_TOPIC, text=f'"id":{late},'),
        "text, any case": SearchQuery(_TOPIC, text="NO SUCH TEXT", is_case_sensitive=False),
        "header": SearchQuery(_TOPIC, header_name="trace", header_value=f"t{late}"),
        "JSONPath ==": SearchQuery(_TOPIC, jsonpath=f"$.order.id == {late}"),
        "JSONPath <": SearchQuery(_TOPIC, jsonpath="$.order.id < 0"),
    }


async def _search(label: str, collector: Collector, query: SearchQuery) -> None:
    reports: list[SearchProgress] = []
    began, cpu_before = time.perf_counter(), cpu_seconds(os.getpid())
    first_s: float | None = None
    async for _ in search(collector, query, reports.append):
        first_s = first_s or time.perf_counter() - began
    last = reports[-1]
    cpu_s = (cpu_seconds(os.getpid()) - cpu_before) * 1_000_000 / max(1, last.scanned)
    first = "" if first_s is None else f", first hit after {first_s:.2f} s"
    print(
        f"{label:15} {last.records_per_s:9,.0f} records/s, {cpu_s:5.1f} s of CPU for a million,"
        f" {last.hits} hits{first}"
    )


async def _run(address: str, count: int, codec: Codec) -> None:
    collector = Collector(cluster_of_flag(f"search={address}"), SystemClock())
    await collector.start()
    await create_topics(collector.client, {_TOPIC: 3}, configs={})
    await write_orders(collector.client, _TOPIC, count, codec)
    for label, query in _queries(count).items():
        await _search(label, collector, query)
    began, size = time.perf_counter(), 0
    async for chunk in download(collector, SearchQuery(_TOPIC), "jsonl"):
        size += len(chunk)
    seconds = time.perf_counter() - began
    print(f"{'download':15} {count / seconds:9,.0f} records/s, {size >> 20} MiB")
    await collector.stop()
    print(f"largest memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--codec", choices=[codec.name for codec in Codec], default="NONE")
    add_checkout(parser)
    arguments = parser.parse_args()
    with serving(arguments.ours) as (address, _):
        asyncio.run(_run(address, arguments.records, Codec[arguments.codec]))


if __name__ == "__main__":
    main()
