"""The nodes of a cluster, by DescribeCluster (KIP-700, KIP-919, KIP-1073)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.client.errors import check
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from wirebroker.client.kafka_client import KafkaClient

# DescribeCluster's endpoint_type.
BROKERS: Final = 1
CONTROLLERS: Final = 2
# Earlier requests have no such fields.
_FIRST_WITH_TYPES: Final = 1
_FIRST_WITH_FENCED: Final = 2


async def describe_cluster(
    client: KafkaClient,
    *,
    endpoint_type: int = BROKERS,
    fenced: bool = False,
    operations: bool = False,
) -> Any:
    """Return a DescribeClusterResponse without an error.

    Args:
        client: The cluster.
        endpoint_type: BROKERS or CONTROLLERS, as the first addresses of the client are.
        fenced: Whether fenced brokers are listed too.
        operations: Whether the response tells what the user is allowed to do with the cluster.

    Raises:
        ClientError: The cluster refuses or does not respond.
    """

    def body(version: int) -> dict[str, Any]:
        asked: dict[str, Any] = {"include_cluster_authorized_operations": operations}
        if version >= _FIRST_WITH_TYPES:
            asked["endpoint_type"] = endpoint_type
        if version >= _FIRST_WITH_FENCED:
            asked["include_fenced_brokers"] = fenced
        return asked

    answer = await client.request(ApiKey.DESCRIBE_CLUSTER, body)
    check(answer.error_code, "the cluster cannot be described", answer.error_message)
    return answer
