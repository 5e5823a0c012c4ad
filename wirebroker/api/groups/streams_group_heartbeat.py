"""StreamsGroupHeartbeat: joins, keeps or ends a membership of a streams group (KIP-1071).

v1 a 64-bit recovery lag, the status MISSING_CLIENT_TAGS, requests for a topology description
(KIP-1331), which this broker never makes.

Source: Kafka's KafkaApis.handleStreamsGroupHeartbeat.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from wirebroker.api.forwarding import requester_of
from wirebroker.api.groups import hashing
from wirebroker.api.groups.group_errors import (
    access_of,
    client_host,
    error_only,
    response_of,
    serves_streams_groups,
)
from wirebroker.api.groups.member_memory import memory_error
from wirebroker.api.registry import handles
from wirebroker.base.clock import Slices
from wirebroker.base.threads import Work, in_thread
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.permissions import (
    CREATE_IN_CLUSTER,
    CREATE_TOPIC,
    DESCRIBE_TOPIC,
    READ_GROUP,
)
from wirebroker.coordinator.groups.classic.join import shortened
from wirebroker.coordinator.groups.group import GroupType
from wirebroker.coordinator.groups.streams.prepared_topology import inputs_of, prepare
from wirebroker.coordinator.groups.streams.request_bounds import check_bounds
from wirebroker.coordinator.groups.streams.streams_heartbeat import (
    ENDPOINTS,
    INTERNAL_TOPICS,
    heartbeat,
)
from wirebroker.coordinator.groups.streams.streams_request import StreamsHeartbeat
from wirebroker.coordinator.groups.topologies.topic_problem import TopicStatus
from wirebroker.coordinator.groups.topologies.topology import topic_names
from wirebroker.request.handlers import Cost
from wirebroker.request.request import LargeResponse

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from wirebroker.api.broker import Broker
    from wirebroker.coordinator.groups.shard.shard import GroupShard
    from wirebroker.coordinator.groups.streams.prepared_topology import PreparedTopology
    from wirebroker.request.request import Request

# The topology of a longer request may take milliseconds.
_LONG_BYTES: Final = 4 << 10
# Attempts to prepare a topology before the operation does its work.
_MOST_ATTEMPTS: Final = 3
_MOST_ERRORS: Final = 3
# Failures are reported for two intervals between heartbeats, and not repeated meanwhile.
_INTERVALS: Final = 2


@handles(
    ApiKey.STREAMS_GROUP_HEARTBEAT,
    permissions=(READ_GROUP, DESCRIBE_TOPIC, CREATE_TOPIC, CREATE_IN_CLUSTER),
    cost=Cost.LOG,
)
def streams_group_heartbeat(
    broker: Broker, request: Request, body: Any
) -> Mapping[str, Any] | Awaitable[Mapping[str, Any]]:
    """Update the member and return its tasks; create missing internal topics."""
    if not serves_streams_groups(broker):
        return error_only(ErrorCode.UNSUPPORTED_VERSION)
    try:
        check_bounds(body)
    except KafkaError as invalid:
        return {"error_code": invalid.code, "error_message": invalid.message}
    heard = StreamsHeartbeat(
        body,
        request.version,
        shortened(request.client_id or ""),
        client_host(request),
        len(request.frame) - request.position > _LONG_BYTES,
    )
    error = memory_error(broker, body.group_id, body.member_id, body.instance_id, heard.size_bytes)
    if error is not ErrorCode.NONE:
        return error_only(error)
    try:
        # As in Kafka, before the coordinator is looked up.
        heard.check()
    except KafkaError as invalid:
        return {"error_code": invalid.code, "error_message": invalid.message}
    names = () if body.topology is None else set(topic_names(body.topology))
    beat = partial(_beat, broker, request, heard)
    result = hashing.submit(broker, body.group_id, names, beat)
    if isinstance(result, Mapping) and ENDPOINTS not in result:
        return result
    return _with_endpoints(broker, result)


def _beat(
    broker: Broker, request: Request, heard: StreamsHeartbeat
) -> Mapping[str, Any] | Awaitable[Mapping[str, Any]]:
    shard = broker.groups.shard_of(heard.body.group_id)
    if shard is None or inputs_of(shard, heard) is None:
        return _submit(broker, request, heard)
    return _beat_prepared(broker, request, heard, shard)


async def _beat_prepared(
    broker: Broker, request: Request, heard: StreamsHeartbeat, shard: GroupShard
) -> Mapping[str, Any]:
    """Prepare a large topology in a thread, then run the operation."""
    prepared: PreparedTopology | None = None
    async with broker.groups.preparing_steps[GroupType.STREAMS]:
        for _ in range(_MOST_ATTEMPTS):
            inputs = inputs_of(shard, heard)
            if inputs is None or (prepared and prepared.is_from(inputs, shard.topic_hashes)):
                break
            prepared = await in_thread(Work.CODING, prepare, inputs)
        result = _submit(broker, request, heard, prepared)
    return await response_of(result)


def _submit(
    broker: Broker,
    request: Request,
    heard: StreamsHeartbeat,
    prepared: PreparedTopology | None = None,
) -> Mapping[str, Any] | Awaitable[Mapping[str, Any]]:
    return broker.groups.submit(
        heard.body.group_id,
        partial(heartbeat, prepared=prepared),
        heard,
        on_error=error_only,
        finish=partial(_with_topics, broker, request),
    )


async def _with_endpoints(
    broker: Broker, result: Mapping[str, Any] | Awaitable[Mapping[str, Any]]
) -> Mapping[str, Any]:
    """Return the response with the partitions by endpoint, listed in slices."""
    answer = await response_of(result)
    steps = answer.get(ENDPOINTS)
    if steps is None:
        return answer
    response = {name: value for name, value in answer.items() if name != ENDPOINTS}
    entries = await Slices(broker.clock).run(steps)
    return LargeResponse(response | {"partitions_by_user_endpoint": entries})


def _with_topics(broker: Broker, request: Request, answer: dict[str, Any]) -> Mapping[str, Any]:
    """Return the response; begin to create missing topics, or say why they are not created."""
    topics = answer.get(INTERNAL_TOPICS)
    if topics is None:
        return answer
    response = {name: value for name, value in answer.items() if name != INTERNAL_TOPICS}
    names = [topic.name for topic in topics]
    denied = _denied(broker, request, names)
    if denied:
        detail = f"; Unauthorized to CREATE on topics {', '.join(denied)}."
    else:
        creation = broker.groups.streams_topics
        kept_ms = _INTERVALS * response["heartbeat_interval_ms"]
        creation.create(topics, requester_of(request), kept_ms=kept_ms)
        failures = creation.failures(names)
        if not failures:
            return response
        detail = f"; Creation failed: {_listed(failures)}."
    response["status"] = [
        {**status, "status_detail": status["status_detail"] + detail}
        if status["status_code"] == TopicStatus.MISSING_INTERNAL_TOPICS
        else status
        for status in response["status"]
    ]
    return response


def _denied(broker: Broker, request: Request, names: Sequence[str]) -> list[str]:
    """Return the topics that the client may not create."""
    access = access_of(broker, request)
    if access is None or access.may(CREATE_IN_CLUSTER, logs_denied=False):
        return []
    return [name for name in names if not access.may(CREATE_TOPIC, name)]


def _listed(failures: Mapping[str, str]) -> str:
    texts = [f"{name} ({reason})" for name, reason in failures.items()]
    more = len(texts) - _MOST_ERRORS
    listed = ", ".join(texts[:_MOST_ERRORS])
    return f"{listed} and {more} more" if more > 0 else listed
