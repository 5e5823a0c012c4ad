"""ShareFetch: returns records that a member of a share group acquires, and takes acknowledgements.

v2 acquire modes and renewals (KIP-1206, KIP-1222).

    session -> acknowledge ┬-> response
            -> fetch, wait ┘

Source: Kafka's KafkaApis.handleShareFetchRequest, SharePartitionManager.newContext; KIP-932.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from wirebroker.api.data.leader_endpoints import leader_endpoints
from wirebroker.api.groups.group_errors import access_of
from wirebroker.api.registry import handles_raw
from wirebroker.api.share.share_requests import (
    MOVED,
    AcknowledgeError,
    Acknowledging,
    checked_member,
    current_leader,
    partition_error,
    topic_name,
)
from wirebroker.base.clock import Slices, in_one_go, pause
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.hot.share_fetch_response import ShareFetchResult, encode_share_fetch
from wirebroker.codecs.permissions import READ_GROUP, READ_TOPIC
from wirebroker.coordinator.share_partitions.share_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    ShareSessionPartition,
    new_session,
)
from wirebroker.request.body_decoding import decoded
from wirebroker.request.handlers import Cost
from wirebroker.share.share_fetch import ShareFetch, ShareFetchWish

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from wirebroker.api.broker import Broker
    from wirebroker.authorization.access import RequestAccess
    from wirebroker.base.clock import Steps
    from wirebroker.coordinator.share_partitions.share_sessions import (
        SessionMember,
        ShareFetchSession,
    )
    from wirebroker.request.request import Reply, Request

_RECORD_MODE: Final = 1
_MODES: Final = (0, _RECORD_MODE)
# A client without a session waits so long before it gets the error.
_LONGEST_PAUSE_MS: Final = 5_000
# Partitions before other work may run.
_STEP: Final = 200


@handles_raw(ApiKey.SHARE_FETCH, permissions=(READ_GROUP, READ_TOPIC), cost=Cost.WAITS)
async def share_fetch(broker: Broker, request: Request) -> Reply:
    """Acquire records for a member, or wait for some."""
    body = await decoded(request)
    access = access_of(broker, request)
    try:
        member = checked_member(broker, access, body)
        _check_renewal(body)
        work = _ShareFetching(broker, request, body, member, access)
        await work.find_session()
    except KafkaError as error:
        if error.code is ErrorCode.SHARE_SESSION_LIMIT_REACHED:
            await pause(min(max(0, body.max_wait_ms), _LONGEST_PAUSE_MS) / 1000)
        return _refusal(request, error.code)
    return await work.run()


def _refusal(request: Request, code: ErrorCode) -> Reply:
    request.count_error(code)
    return in_one_go(encode_share_fetch({}, lock_timeout_ms=0, error_code=code))


def _check_renewal(body: Any) -> None:
    """Check that a request with renewals fetches nothing.

    Raises:
        KafkaError: INVALID_REQUEST.
    """
    is_renewal = getattr(body, "is_renew_ack", False)
    if is_renewal and (body.max_bytes or body.min_bytes or body.max_records or body.max_wait_ms):
        raise KafkaError(ErrorCode.INVALID_REQUEST)


class _ShareFetching:
    """One request of a session."""

    __slots__ = (
        "_access",
        "_body",
        "_broker",
        "_is_renewal",
        "_member",
        "_request",
        "_session",
        "_slices",
        "_wanted",
    )

    def __init__(
        self,
        broker: Broker,
        request: Request,
        body: Any,
        member: SessionMember,
        access: RequestAccess | None,
    ) -> None:
        self._broker = broker
        self._request = request
        self._body = body
        self._member = member
        self._access = access
        self._slices = Slices(broker.clock)
        self._is_renewal: bool = getattr(body, "is_renew_ack", False)
        # None if all results are sent.
        self._session: ShareFetchSession | None = None
        # The partitions to fetch, with the names of their topics.
        self._wanted: Mapping[ShareSessionPartition, str | None] = {}

    async def find_session(self) -> None:
        """Open or change the session.

        Raises:
            KafkaError: SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH, INVALID_REQUEST,
                SHARE_SESSION_LIMIT_REACHED.
        """
        body, member = self._body, self._member
        sessions = self._broker.shares.sessions
        epoch = body.share_session_epoch
        if epoch == FINAL_EPOCH:
            sessions.check(member, epoch)
            return
        named = await self._slices.run(self._named())
        if epoch == INITIAL_EPOCH:
            await self._open(named)
            return
        found = self._session = sessions.check(member, epoch)
        await self._slices.run(sessions.change(found, named, _forgotten(body)))
        self._wanted = found.named()

    async def _open(self, named: Mapping[ShareSessionPartition, str | None]) -> None:
        if _has_acknowledgements(self._body):
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        shares, connection = self._broker.shares, self._request.session
        opened = await self._slices.run(new_session(self._member, connection.id, named))
        await shares.ends.until_released(self._member)
        shares.sessions.open(opened)
        connection.when_closed("share sessions", shares.ends.connection_ended)
        self._wanted = named

    def _named(self) -> Steps[dict[ShareSessionPartition, str | None]]:
        named: dict[ShareSessionPartition, str | None] = {}
        for topic in self._body.topics:
            name = topic_name(self._broker, topic.topic_id)
            for partition in topic.partitions:
                named[ShareSessionPartition(topic.topic_id, partition.partition_index)] = name
                if len(named) % _STEP == 0:
                    yield
        return named

    async def run(self) -> Reply:
        acknowledging: asyncio.Task[dict[ShareSessionPartition, AcknowledgeError]] | None = None
        if _has_acknowledgements(self._body):
            work = Acknowledging(self._broker, self._member)
            # Released records can be fetched, acknowledged ones cannot.
            begun = await work.begin(self._access, self._body, self._request.version)
            acknowledging = asyncio.create_task(begun, name="share acknowledgements")
        metrics = self._broker.metrics
        metrics.share_fetches += len({topic_id for topic_id, _ in self._wanted})
        try:
            fetch, failed = await self._begin_fetch()
            if fetch is not None:
                await self._fetch(fetch)
        finally:
            acknowledged = {} if acknowledging is None else await acknowledging
        if fetch is None:
            return _refusal(self._request, ErrorCode.UNKNOWN_SERVER_ERROR)
        results = {**fetch.results, **failed}
        metrics.failed_share_fetches += sum(1 for result in results.values() if result.error_code)
        if self._is_throttled(results):
            await fetch.take_back()
            results = {}
        fetch.note_sent()
        reply = await Slices(self._broker.clock).run(self._response(results, acknowledged))
        if self._body.share_session_epoch == FINAL_EPOCH:
            self._broker.shares.ends.end(self._member)
        return reply

    async def _fetch(self, fetch: ShareFetch) -> None:
        """Acquire records; take back those that cannot be sent."""
        try:
            await fetch.run()
        except Exception:  # raised again
            await fetch.take_back()
            raise
        if self._request.session.has_ended:
            await fetch.take_back()

    async def _begin_fetch(
        self,
    ) -> tuple[ShareFetch | None, dict[ShareSessionPartition, ShareFetchResult]]:
        """Return the fetch, and the results of partitions that cannot be fetched.

        Without a known acquire mode there is no fetch.
        """
        broker, body = self._broker, self._body
        failed: dict[ShareSessionPartition, ShareFetchResult] = {}
        partitions: list[ShareSessionPartition] = []
        # A request with renewals fetches nothing.
        for partition, name in () if self._is_renewal else self._wanted.items():
            error = partition_error(broker, self._access, name, partition)
            if error is ErrorCode.NONE:
                partitions.append(partition)
            else:
                failed[partition] = ShareFetchResult(partition.partition, error)
            await self._slices.turn()
        if partitions and getattr(body, "share_acquire_mode", 0) not in _MODES:
            return None, failed
        fetch = ShareFetch(
            broker.shares,
            broker.replicas,
            self._wish(),
            lambda: broker.is_stopping,
            clock=broker.clock,
        )
        self._request.session.when_ended(fetch.give_up)
        await fetch.find(_rotated(partitions, body.share_session_epoch))
        return fetch, failed

    def _wish(self) -> ShareFetchWish:
        broker, body = self._broker, self._body
        max_bytes = min(body.max_bytes, broker.config.int("fetch.max.bytes"))
        if broker.quotas.has_quotas:
            max_bytes = min(max_bytes, broker.quotas.max_fetch_bytes(self._request))
        configs = broker.shares.configs.of(self._member.group_id)
        return ShareFetchWish(
            self._member,
            body.max_wait_ms,
            min(body.min_bytes, max_bytes),
            max(0, max_bytes),
            min(body.max_records, configs.limits.max_record_locks),
            max(1, body.batch_size),
            getattr(body, "share_acquire_mode", 0) == _RECORD_MODE,
            configs.is_read_committed,
        )

    def _is_throttled(self, results: Mapping[ShareSessionPartition, ShareFetchResult]) -> bool:
        quotas = self._broker.quotas
        if not quotas.has_quotas:
            return False
        size = sum(result.size for result in results.values())
        return quotas.is_too_much(self._request, records_bytes=size, partitions=len(results))

    def _response(
        self,
        results: Mapping[ShareSessionPartition, ShareFetchResult],
        acknowledged: Mapping[ShareSessionPartition, AcknowledgeError],
    ) -> Steps[Reply]:
        broker = self._broker
        sent = yield from self._sent(results)
        for count, (partition, error) in enumerate(acknowledged.items(), 1):
            result = sent.setdefault(partition, ShareFetchResult(partition.partition))
            result.acknowledge_error, result.acknowledge_message = error
            if count % _STEP == 0:
                yield
        topics: dict[bytes, list[ShareFetchResult]] = {}
        leaders: set[int] = set()
        for count, (partition, result) in enumerate(sent.items(), 1):
            if result.error_code in MOVED:
                result.current_leader = current_leader(broker, partition)
                leaders.add(result.current_leader[0])
            topics.setdefault(partition.topic_id, []).append(result)
            self._request.count_error(result.error_code)
            self._request.count_error(result.acknowledge_error)
            if count % _STEP == 0:
                yield
        return (
            yield from encode_share_fetch(
                topics,
                lock_timeout_ms=broker.shares.configs.limits(
                    self._member.group_id
                ).lock_duration_ms,
                node_endpoints=(
                    leader_endpoints(broker, self._request.session, leaders) if leaders else ()
                ),
            )
        )

    def _sent(
        self, results: Mapping[ShareSessionPartition, ShareFetchResult]
    ) -> Steps[dict[ShareSessionPartition, ShareFetchResult]]:
        """Return the results that the session must send."""
        session = self._session
        sent: dict[ShareSessionPartition, ShareFetchResult] = {}
        for count, (partition, result) in enumerate(results.items(), 1):
            if session is None or session.must_send(
                partition, has_records=result.size > 0, has_error=result.error_code != 0
            ):
                sent[partition] = result
            if count % _STEP == 0:
                yield
        return sent


def _has_acknowledgements(body: Any) -> bool:
    return any(
        partition.acknowledgement_batches for topic in body.topics for partition in topic.partitions
    )


def _forgotten(body: Any) -> Iterable[ShareSessionPartition]:
    for topic in body.forgotten_topics_data:
        for index in topic.partitions:
            yield ShareSessionPartition(topic.topic_id, index)


def _rotated(
    partitions: Sequence[ShareSessionPartition], epoch: int
) -> Sequence[ShareSessionPartition]:
    """Begin with another partition in each request of a session."""
    if len(partitions) < 2 or epoch < 1:
        return partitions
    start = epoch % len(partitions)
    return [*partitions[start:], *partitions[:start]]
