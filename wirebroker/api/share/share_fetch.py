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
    acknowledgements_of,
    checked_member,
    current_leader,
    partition_error,
    topic_name,
)
from wirebroker.base.clock import pause
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.hot.share_fetch_response import ShareFetchResult, encode_share_fetch
from wirebroker.codecs.permissions import READ_GROUP, READ_TOPIC
from wirebroker.coordinator.share_partitions.share_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    ShareSessionPartition,
)
from wirebroker.request.body_decoding import decoded
from wirebroker.request.handlers import Cost
from wirebroker.share.share_fetch import ShareFetch, ShareFetchWish

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from wirebroker.api.broker import Broker
    from wirebroker.authorization.access import RequestAccess
    from wirebroker.coordinator.share_partitions.share_sessions import (
        SessionMember,
        ShareFetchSession,
    )
    from wirebroker.request.request import Reply, Request

_RECORD_MODE: Final = 1
_MODES: Final = (0, _RECORD_MODE)
# A client without a session waits so long before it gets the error.
_LONGEST_PAUSE_MS: Final = 5_000


@handles_raw(ApiKey.SHARE_FETCH, permissions=(READ_GROUP, READ_TOPIC), cost=Cost.WAITS)
async def share_fetch(broker: Broker, request: Request) -> Reply:
    """Acquire records for a member, or wait for some."""
    body = await decoded(request)
    access = access_of(broker, request)
    try:
        member = checked_member(broker, access, body)
        _check_renewal(body)
        work = _ShareFetching(broker, request, body, member, access)
    except KafkaError as error:
        if error.code is ErrorCode.SHARE_SESSION_LIMIT_REACHED:
            await pause(min(max(0, body.max_wait_ms), _LONGEST_PAUSE_MS) / 1000)
        request.count_error(error.code)
        return encode_share_fetch({}, lock_timeout_ms=0, error_code=error.code)
    return await work.run()


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
        """Find the session.

        Raises:
            KafkaError: SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH, INVALID_REQUEST,
                SHARE_SESSION_LIMIT_REACHED.
        """
        self._broker = broker
        self._request = request
        self._body = body
        self._member = member
        self._access = access
        self._is_renewal: bool = getattr(body, "is_renew_ack", False)
        # None if all results are sent.
        self._session: ShareFetchSession | None = None
        self._wanted = self._partitions_of_session()

    def _partitions_of_session(self) -> Mapping[ShareSessionPartition, str | None]:
        """Return the partitions to fetch, with the names of their topics."""
        body, member = self._body, self._member
        sessions = self._broker.shares.sessions
        epoch = body.share_session_epoch
        if epoch == FINAL_EPOCH:
            sessions.check(member, epoch)
            return {}
        named = {
            ShareSessionPartition(topic.topic_id, partition.partition_index): topic_name(
                self._broker, topic.topic_id
            )
            for topic in body.topics
            for partition in topic.partitions
        }
        session = self._request.session
        if epoch == INITIAL_EPOCH:
            if _has_acknowledgements(body):
                raise KafkaError(ErrorCode.INVALID_REQUEST)
            sessions.open(member, session.id, named)
            session.when_closed("share sessions", self._broker.shares.connection_ended)
            return named
        found = sessions.check(member, epoch)
        sessions.change(found, named, _forgotten(body))
        self._session = found
        return found.named()

    async def run(self) -> Reply:
        acknowledging: asyncio.Task[dict[ShareSessionPartition, AcknowledgeError]] | None = None
        if _has_acknowledgements(self._body):
            work = Acknowledging(
                self._broker,
                self._access,
                self._member,
                acknowledgements_of(self._body),
                version=self._request.version,
                is_renew=self._is_renewal,
            )
            # Released records can be fetched, acknowledged ones cannot.
            acknowledging = asyncio.create_task(await work.begin(), name="share acknowledgements")
        metrics = self._broker.metrics
        metrics.share_fetches += len({topic_id for topic_id, _ in self._wanted})
        fetch, failed = self._begin_fetch()
        if fetch is None:
            self._request.count_error(ErrorCode.UNKNOWN_SERVER_ERROR)
            return encode_share_fetch(
                {}, lock_timeout_ms=0, error_code=ErrorCode.UNKNOWN_SERVER_ERROR
            )
        try:
            await fetch.run()
        finally:
            acknowledged = {} if acknowledging is None else await acknowledging
        if self._request.session.has_ended:
            fetch.take_back()
        results = {**fetch.results, **failed}
        metrics.failed_share_fetches += sum(1 for result in results.values() if result.error_code)
        is_throttled = self._is_throttled(results)
        if is_throttled:
            fetch.take_back()
            results = {}
        fetch.note_sent()
        reply = self._response(results, acknowledged)
        if self._body.share_session_epoch == FINAL_EPOCH:
            self._broker.shares.release_session(self._member)
        return reply

    def _begin_fetch(
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
        if partitions and getattr(body, "share_acquire_mode", 0) not in _MODES:
            return None, failed
        fetch = ShareFetch(broker.shares, broker.replicas, self._wish(), lambda: broker.is_stopping)
        self._request.session.when_ended(fetch.give_up)
        fetch.find(_rotated(partitions, body.share_session_epoch))
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
    ) -> Reply:
        broker, session = self._broker, self._session
        topics: dict[bytes, list[ShareFetchResult]] = {}
        leaders: set[int] = set()
        sent = {
            partition: result
            for partition, result in results.items()
            if session is None
            or session.must_send(
                partition, has_records=result.size > 0, has_error=result.error_code != 0
            )
        }
        for partition, error in acknowledged.items():
            result = sent.setdefault(partition, ShareFetchResult(partition.partition))
            result.acknowledge_error, result.acknowledge_message = error
        for partition, result in sent.items():
            if result.error_code in MOVED:
                result.current_leader = current_leader(broker, partition)
                leaders.add(result.current_leader[0])
            topics.setdefault(partition.topic_id, []).append(result)
            self._request.count_error(result.error_code)
            self._request.count_error(result.acknowledge_error)
        return encode_share_fetch(
            topics,
            lock_timeout_ms=broker.shares.configs.limits(self._member.group_id).lock_duration_ms,
            node_endpoints=(
                leader_endpoints(broker, self._request.session, leaders) if leaders else ()
            ),
        )


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
