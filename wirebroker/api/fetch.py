"""Fetch: records as slices of segment files (hot path; see DESIGN "One Fetch").

v4-12 name topics, v13 gives ids; v7 sessions (KIP-227); v9 leader epochs (KIP-320); v12 flexible
and diverging epochs (KIP-595); v15 replica state (KIP-903); v16 leader endpoints (KIP-951); v17
replica directory (KIP-853); v18 high watermark (KIP-1166).

    parse -> session -> find partitions -> read each -> enough? -> choose what is news -> encode
                                             ^            | no
                                             +-- waiting: fetch_wait.py

A request for thousands of partitions takes the same steps, the ones over all partitions in slices
of the loop's time, parsing and encoding in a thread.

Source: Kafka's KafkaApis.handleFetchRequest, ReplicaManager.readFromLog.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from wirebroker.api.fetch_sessions import FetchContext, SessionPartition, asked_partitions
from wirebroker.api.fetch_wait import FetchWait
from wirebroker.api.partition_reads import PartitionReads
from wirebroker.api.registry import Reply, Request, handles_raw
from wirebroker.clock import Slices, finish, in_one_go
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.fetch import FetchRequest, parse_fetch
from wirebroker.codecs.fetch_response import FetchPartitionResult, encode_fetch

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from wirebroker.broker import Broker

# A longer request is parsed in a thread: it can name 2,000 partitions, which take 4 ms.
_LONGEST_AT_ONCE_BYTES = 64 << 10

# Over more partitions every step is sliced: reading one takes about 4 us.
_MANY_PARTITIONS = 1_000


@handles_raw(ApiKey.FETCH)
def fetch(broker: Broker, request: Request) -> Reply | Awaitable[Reply]:
    """Answer with what is there, or wait for more."""
    version = request.version
    if len(request.frame) - request.position > _LONGEST_AT_ONCE_BYTES:
        request.keep()
        return _fetch_long(broker, request)
    wanted = parse_fetch(request.frame, request.position, version)
    context = in_one_go(
        broker.fetch_sessions.context(
            wanted, asked_partitions(wanted), version=version, now_ms=broker.clock.now_ms()
        )
    )
    reads = PartitionReads(broker, wanted, version)
    if len(context.partitions) > _MANY_PARTITIONS:
        return _fetch_many(broker, version, context, reads)
    finish(reads.find(context.partitions))
    finish(reads.look())
    if reads.is_ready():
        finish(context.select(reads.results, version=version, now_ms=broker.clock.now_ms()))
        return _encode(version, context)
    # Watching begins here and now: what is appended before the task runs must not be missed.
    wait = FetchWait(reads)
    finish(wait.begin())
    return _fetch_later(broker, version, context, reads, wait)


async def _fetch_long(broker: Broker, request: Request) -> Reply:
    """Serve a request that takes long to parse."""
    version = request.version
    loop = asyncio.get_running_loop()
    wanted, asked = await loop.run_in_executor(
        None, _parse, request.frame, request.position, version
    )
    context = await Slices(broker.clock).run(
        broker.fetch_sessions.context(wanted, asked, version=version, now_ms=broker.clock.now_ms())
    )
    return await _fetch_many(broker, version, context, PartitionReads(broker, wanted, version))


def _parse(
    frame: memoryview, position: int, version: int
) -> tuple[FetchRequest, list[SessionPartition]]:
    wanted = parse_fetch(frame, position, version)
    return wanted, asked_partitions(wanted)


async def _fetch_many(
    broker: Broker, version: int, context: FetchContext, reads: PartitionReads
) -> Reply:
    """Do the first steps of `fetch` without holding the loop."""
    slices = Slices(broker.clock)
    await slices.run(reads.find(context.partitions))
    wait = FetchWait(reads)
    if reads.max_wait_ms > 0:
        await slices.run(wait.begin())
    await slices.run(reads.look())
    return await _fetch_later(broker, version, context, reads, wait)


async def _fetch_later(
    broker: Broker, version: int, context: FetchContext, reads: PartitionReads, wait: FetchWait
) -> Reply:
    """Wait if need be, then answer."""
    slices = Slices(broker.clock)
    try:
        if not reads.is_ready() and await wait.until_ready():
            await slices.run(reads.look())
    finally:
        await slices.run(wait.end())
    await slices.run(context.select(reads.results, version=version, now_ms=broker.clock.now_ms()))
    if len(context.chosen) <= _MANY_PARTITIONS:
        return _encode(version, context)
    return await asyncio.get_running_loop().run_in_executor(None, _encode, version, context)


def _encode(version: int, context: FetchContext) -> Reply:
    topics: list[tuple[str, bytes, list[FetchPartitionResult]]] = []
    for asked, result in context.chosen:
        if topics and topics[-1][0] == asked.topic and topics[-1][1] == asked.topic_id:
            topics[-1][2].append(result)
        else:
            topics.append((asked.topic, asked.topic_id, [result]))
    return encode_fetch(
        version, error_code=context.error, session_id=context.session_id, topics=topics
    )
