"""ShareAcknowledge: accepts, releases, rejects or renews acquired records (KIP-932).

v2 renewals (KIP-1222).

Source: Kafka's KafkaApis.handleShareAcknowledgeRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.api.data.leader_endpoints import leader_endpoints
from wirebroker.api.groups.group_errors import access_of, error_only
from wirebroker.api.registry import handles
from wirebroker.api.share.share_requests import (
    MOVED,
    Acknowledging,
    checked_member,
    current_leader,
)
from wirebroker.base.clock import Slices
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import KafkaError
from wirebroker.codecs.permissions import READ_GROUP, READ_TOPIC
from wirebroker.coordinator.share_partitions.share_sessions import FINAL_EPOCH
from wirebroker.request.handlers import Cost

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.api.broker import Broker
    from wirebroker.api.share.share_requests import AcknowledgeError
    from wirebroker.base.clock import Steps
    from wirebroker.coordinator.share_partitions.share_sessions import ShareSessionPartition
    from wirebroker.request.request import Request

# Partitions before other work may run.
_STEP: Final = 200


@handles(ApiKey.SHARE_ACKNOWLEDGE, permissions=(READ_GROUP, READ_TOPIC), cost=Cost.LOG)
async def share_acknowledge(broker: Broker, request: Request, body: Any) -> Mapping[str, Any]:
    """Apply the acknowledgements of a session's member."""
    access = access_of(broker, request)
    try:
        member = checked_member(broker, access, body)
        broker.shares.sessions.acknowledge(member, body.share_session_epoch)
    except KafkaError as error:
        return error_only(error.code)
    work = Acknowledging(broker, member)
    results = await (await work.begin(access, body, request.version))
    if body.share_session_epoch == FINAL_EPOCH:
        broker.shares.ends.end(member)
    slices = Slices(broker.clock)
    return await slices.run(_response(broker, request, member.group_id, results))


def _response(
    broker: Broker,
    request: Request,
    group_id: str,
    results: Mapping[ShareSessionPartition, AcknowledgeError],
) -> Steps[dict[str, Any]]:
    topics: dict[bytes, list[dict[str, Any]]] = {}
    leaders: set[int] = set()
    for count, (partition, error) in enumerate(results.items(), 1):
        fields: dict[str, Any] = {
            "partition_index": partition.partition,
            "error_code": error.code,
            "error_message": error.message,
        }
        if error.code in MOVED:
            leader, epoch = current_leader(broker, partition)
            leaders.add(leader)
            fields["current_leader"] = {"leader_id": leader, "leader_epoch": epoch}
        topics.setdefault(partition.topic_id, []).append(fields)
        if count % _STEP == 0:
            yield
    response: dict[str, Any] = {
        "acquisition_lock_timeout_ms": broker.shares.configs.limits(group_id).lock_duration_ms,
        "responses": [
            {"topic_id": topic_id, "partitions": partitions}
            for topic_id, partitions in topics.items()
        ],
    }
    if leaders:
        names = ("node_id", "host", "port", "rack")
        response["node_endpoints"] = [
            dict(zip(names, endpoint, strict=True))
            for endpoint in leader_endpoints(broker, request.session, leaders)
        ]
    return response
