"""ElectLeaders: the preferred replica made leader, or any replica if there is no leader (KIP-460).

v0 preferred elections, v1 election types and a top-level error, v2 flexible. The rules are
coordinator/leader_election.py's; with one broker there is nearly always nothing to do.

Source: Kafka's ControllerApis.handleElectLeaders.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.api.registry import Request, handles
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import KafkaError

if TYPE_CHECKING:
    from wirebroker.broker import Broker


@handles(ApiKey.ELECT_LEADERS)
async def elect_leaders(broker: Broker, request: Request, body: Any) -> dict[str, Any]:
    """Hold the elections; a refusal of the whole request is repeated for each partition."""
    del request
    try:
        results = await broker.metadata.submit(broker.controller.elect_leaders(body))
    except KafkaError as error:
        failure = {"error_code": int(error.code), "error_message": error.message}
        refused = [
            {
                "topic": topic.topic,
                "partition_result": [
                    {"partition_id": each, **failure} for each in topic.partitions
                ],
            }
            for topic in body.topic_partitions or ()
        ]
        return {"error_code": int(error.code), "replica_election_results": refused}
    return {"replica_election_results": results}
