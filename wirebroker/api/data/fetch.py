"""Fetch: returns records as slices of segment files (hot path; docs/design.md, "One Fetch").

v4-12 name topics, v13 gives ids; v7 sessions (KIP-227); v12 diverging epochs (KIP-595); v16 leader
endpoints (KIP-951).

    parse -> session -> find partitions -> read each -> enough? -> select results -> encode
                                               ^   | no
                                               +-- wait: fetch_wait.py

Requests for thousands of partitions run in slices; a thread parses and encodes.

Source: Kafka's KafkaApis.handleFetchRequest, ReplicaManager.readFromLog; KIP-320, KIP-853, KIP-903,
KIP-1166.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.api.data.fetch_wait import FetchWait
from wirebroker.api.data.follower_reads import FollowerReads
from wirebroker.api.data.leader_endpoints import leader_endpoints
from wirebroker.api.data.partition_reads import PartitionReads
from wirebroker.api.registry import handles_raw
from wirebroker.base.clock import Slices, finish
from wirebroker.base.threads import LONGEST_ON_LOOP_BYTES, Work, coding, in_thread
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.hot.fetch import FetchRequest, parse_fetch
from wirebroker.codecs.hot.fetch_response import FetchPartitionResult, encode_fetch
from wirebroker.codecs.permissions import CLUSTER_ACTION, READ_TOPIC
from wirebroker.request.fetch_sessions import TOPIC_ID_VERSION, FetchContext, requested_partitions
from wirebroker.request.handlers import Cost
from wirebroker.request.session import NO_CLIENT
from wirebroker.storage.files import ColdPagesError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from wirebroker.api.broker import Broker
    from wirebroker.codecs.hot.produce_response import NodeEndpoint
    from wirebroker.request.fetch_session import SessionPartition
    from wirebroker.request.request import Reply, Request

# Bytes that a thread reads from a batch's start: the range of the sender's next probe.
_WARMED_BYTES = 256 << 10
# After this many cold positions a Fetch blocks on the disk.
_MOST_WARMED = 20

# More partitions are served in slices: a read takes about 4 us.
_MANY_PARTITIONS = 1_000


@handles_raw(ApiKey.FETCH, permissions=(READ_TOPIC, CLUSTER_ACTION), cost=Cost.WAITS)
def fetch(broker: Broker, request: Request) -> Reply | Awaitable[Reply]:
    """Return available records, or wait for more."""
    version = request.version
    if len(request.frame) - request.position > LONGEST_ON_LOOP_BYTES:
        request.keep()
        return _fetch_long(broker, request)
    body = parse_fetch(request.frame, request.position, version)
    partitions = requested_partitions(body)
    context = broker.fetch_sessions.context(
        body,
        partitions,
        version=version,
        now_ms=broker.clock.now_ms(),
        owner=request.session,
    )
    if context.session_id:
        finish(context.resume(body, partitions))
    reads = _reads(broker, request, body)
    if len(context.partitions) > _MANY_PARTITIONS:
        return _fetch_many(broker, request, context, reads)
    finish(reads.find(context.partitions))
    try:
        finish(reads.look())
    except ColdPagesError:
        return _fetch_cold(broker, request, context, reads)
    if reads.is_ready() or request.session.has_ended:
        if broker.quotas.has_quotas and _exceeds_quota(broker, request, reads):
            return _empty_response(version, context)
        reads.note_sent()
        finish(context.select(reads.results, version=version, now_ms=broker.clock.now_ms()))
        endpoints = _endpoints(broker, request, reads) if reads.has_failed else ()
        _count_errors(request, context, reads)
        return _encode(version, context, endpoints)
    # Watch now: records appended before the task runs must not be missed.
    wait = FetchWait(reads)
    finish(wait.begin())
    request.session.when_ended(wait.give_up)
    return _fetch_later(broker, request, context, reads, wait)


def _reads(broker: Broker, request: Request, body: FetchRequest) -> PartitionReads:
    """Return a consumer's or a follower's reads; replica -2 debugs a follower.

    A follower without CLUSTER_ACTION reads nothing.
    """
    quotas, authorization, version = broker.quotas, broker.authorization, request.version
    access = None if authorization is None else authorization.access_of(request)
    request.session.is_follower = body.replica_id >= 0
    if body.replica_id >= 0:
        if quotas.has_quotas:
            request.session.throttle_ms = NO_CLIENT
        if access is None or access.may(CLUSTER_ACTION):
            return FollowerReads(broker, body, version)
        return PartitionReads(broker, body, version, access.without_user())
    reads = PartitionReads(broker, body, version, access)
    if quotas.has_quotas:
        reads.limit(quotas.max_fetch_bytes(request))
    return reads


def _exceeds_quota(broker: Broker, request: Request, reads: PartitionReads) -> bool:
    """Charge quotas for a response; return whether it must be empty instead."""
    if request.session.throttle_ms == NO_CLIENT:
        return False
    partitions = len(reads.results)
    return broker.quotas.is_too_much(request, records_bytes=reads.size, partitions=partitions)


def _empty_response(version: int, context: FetchContext) -> Reply:
    context.skip()
    return _encode(version, context, ())


async def _fetch_long(broker: Broker, request: Request) -> Reply:
    version = request.version
    work = coding(len(request.frame))
    body, partitions = await in_thread(work, _parse, request.frame, request.position, version)
    context = broker.fetch_sessions.context(
        body,
        partitions,
        version=version,
        now_ms=broker.clock.now_ms(),
        owner=request.session,
    )
    await Slices(broker.clock).run(context.resume(body, partitions))
    return await _fetch_many(broker, request, context, _reads(broker, request, body))


def _parse(
    frame: memoryview, position: int, version: int
) -> tuple[FetchRequest, list[SessionPartition]]:
    body = parse_fetch(frame, position, version)
    return body, requested_partitions(body)


async def _fetch_many(
    broker: Broker, request: Request, context: FetchContext, reads: PartitionReads
) -> Reply:
    await Slices(broker.clock).run(reads.find(context.partitions))
    return await _fetch_cold(broker, request, context, reads)


async def _fetch_cold(
    broker: Broker, request: Request, context: FetchContext, reads: PartitionReads
) -> Reply:
    slices = Slices(broker.clock)
    wait = FetchWait(reads)
    if reads.max_wait_ms > 0 and not request.session.has_ended:
        await slices.run(wait.begin())
    request.session.when_ended(wait.give_up)
    await _look(reads, slices)
    return await _fetch_later(broker, request, context, reads, wait)


async def _fetch_later(
    broker: Broker, request: Request, context: FetchContext, reads: PartitionReads, wait: FetchWait
) -> Reply:
    version = request.version
    slices = Slices(broker.clock)
    try:
        if not reads.is_ready() and await wait.until_ready():
            await _look(reads, slices)
    except BaseException:
        await slices.run(wait.end())
        raise
    await slices.run(wait.end())
    if broker.quotas.has_quotas and _exceeds_quota(broker, request, reads):
        return _empty_response(version, context)
    reads.note_sent()
    await slices.run(context.select(reads.results, version=version, now_ms=broker.clock.now_ms()))
    endpoints = _endpoints(broker, request, reads) if reads.has_failed else ()
    _count_errors(request, context, reads)
    if len(context.chosen) <= _MANY_PARTITIONS:
        return _encode(version, context, endpoints)
    return await in_thread(Work.CODING, _encode, version, context, endpoints)


async def _look(reads: PartitionReads, slices: Slices) -> None:
    for _ in range(_MOST_WARMED):
        try:
            await slices.run(reads.look())
        except ColdPagesError as cold:
            try:
                await in_thread(Work.WARMING, cold.file.warm, cold.position, _WARMED_BYTES)
            except OSError:
                break  # `look` will report it for its partition
        else:
            return
    # Many partitions, or a kernel that drops pages immediately: block if necessary.
    reads.may_block = True
    await slices.run(reads.look())


def _endpoints(broker: Broker, request: Request, reads: PartitionReads) -> Sequence[NodeEndpoint]:
    return leader_endpoints(broker, request.session, reads.leaders())


def _count_errors(request: Request, context: FetchContext, reads: PartitionReads) -> None:
    request.count_error(context.error)
    if reads.has_failed:
        for _, result in context.chosen:
            request.count_error(result.error_code)


def _encode(version: int, context: FetchContext, endpoints: Sequence[NodeEndpoint]) -> Reply:
    topics: list[tuple[str, bytes, list[FetchPartitionResult]]] = []
    by_id = version >= TOPIC_ID_VERSION
    for requested, result in context.chosen:
        last = topics[-1] if topics else None
        if last and (last[1] == requested.topic_id if by_id else last[0] == requested.topic):
            topics[-1][2].append(result)
        else:
            topics.append((requested.topic, requested.topic_id, [result]))
    return encode_fetch(
        version,
        error_code=context.error,
        session_id=context.session_id,
        topics=topics,
        node_endpoints=endpoints,
    )
