"""The paths of the HTTP interface; what programs read of clusters and topics."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import JSONResponse, Response

from wirebroker.base.threads import Work, in_thread
from wirebroker.client.configs.configs import TOPIC, configs_of
from wirebroker.client.errors import ClientError
from wirebroker.client.topics.topic_details import topic_details
from wirebroker.codecs.primitives import uuid_text
from wirebroker.console.api import change_endpoints
from wirebroker.console.api.json_responses import error_response, failure_response
from wirebroker.console.pages.page import collector_of, role_of, viewer_of, visible_collectors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request

    from wirebroker.client.configs.configs import ConfigEntry
    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.client.topics.topic_details import TopicDetails
    from wirebroker.console.model.snapshot import ClusterSnapshot

_PATIENCE_S: Final = 20.0
_MOST_TOPICS: Final = 1000


async def clusters(request: Request) -> Response:
    """Return the clusters in which the token has a role."""
    grants = viewer_of(request).grants
    rows: list[dict[str, Any]] = []
    for name, collector in visible_collectors(request).items():
        role = grants.role_in(name)
        assert role is not None
        rows.append(_cluster(collector.snapshot) | {"role": role.name.lower()})
    return JSONResponse({"clusters": rows})


async def cluster(request: Request) -> Response:
    """Return a cluster."""
    snapshot = collector_of(request).snapshot
    return JSONResponse(_cluster(snapshot) | {"role": role_of(request).name.lower()})


def _cluster(snapshot: ClusterSnapshot) -> dict[str, Any]:
    return {
        "name": snapshot.name,
        "status": snapshot.status.value,
        "cluster_id": snapshot.cluster_id,
        "brokers": len(snapshot.brokers),
        "topics": len(snapshot.topics),
        "failure": None if snapshot.failure is None else snapshot.failure.what,
    }


async def topics(request: Request) -> Response:
    """Return up to 1,000 topics in order of names; `after` is the last name of those before."""
    snapshot = collector_of(request).snapshot
    after = request.query_params.get("after", "")
    names = sorted(name for name in snapshot.topics if name > after)
    rows = [
        {
            "name": name,
            "partitions": snapshot.topics[name].partition_count,
            "replication": snapshot.topics[name].replication_factor,
            "is_internal": snapshot.topics[name].is_internal,
        }
        for name in names[:_MOST_TOPICS]
    ]
    return JSONResponse({"topics": rows, "has_more": len(names) > _MOST_TOPICS})


async def topic(request: Request) -> Response:
    """Return a topic as the cluster describes it now, with the configs that are set."""
    client = collector_of(request).client
    try:
        async with asyncio.timeout(_PATIENCE_S):
            body = await _topic_json(client, request.path_params["topic"])
    except ClientError as error:
        return failure_response(error)
    except TimeoutError:
        return error_response(502, f"the cluster did not respond within {_PATIENCE_S:g} s")
    return Response(body, media_type=JSONResponse.media_type)


async def _topic_json(client: KafkaClient, name: str) -> bytes:
    (details,) = await topic_details(client, [name])
    configs = await configs_of(client, TOPIC, name)
    return await in_thread(Work.LISTS, _json_of_topic, details, configs)


def _json_of_topic(details: TopicDetails, configs: Sequence[ConfigEntry]) -> bytes:
    """Return the JSON piece by piece: one call for 10,000 partitions would hold the GIL."""
    encoder = json.JSONEncoder(separators=(",", ":"))
    return "".join(encoder.iterencode(_topic(details, configs))).encode()


def _topic(details: TopicDetails, configs: Sequence[ConfigEntry]) -> dict[str, Any]:
    return {
        "name": details.name,
        "topic_id": uuid_text(details.topic_id),
        "partitions": [
            {
                "partition": partition.partition,
                "leader": partition.leader,
                "replicas": partition.replicas,
                "isr": partition.isr,
            }
            for partition in details.partitions
        ],
        "configs": {
            entry.name: None if entry.is_sensitive else entry.value
            for entry in configs
            if entry.is_set
        },
    }


# The method, the path below /api/v1/, and the function.
ENDPOINTS: Final[tuple[tuple[str, str, Any], ...]] = (
    ("GET", "changes", change_endpoints.kinds),
    ("GET", "clusters", clusters),
    ("GET", "clusters/{cluster}", cluster),
    ("GET", "clusters/{cluster}/topics", topics),
    ("GET", "clusters/{cluster}/topics/{topic}", topic),
    ("POST", "clusters/{cluster}/changes/{kind}", change_endpoints.make),
    ("GET", "clusters/{cluster}/runs/{run}", change_endpoints.run),
    ("DELETE", "clusters/{cluster}/runs/{run}", change_endpoints.stop),
)
