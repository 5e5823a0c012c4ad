"""The nodes of a cluster, by DescribeCluster (KIP-700, KIP-919, KIP-1073)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from wirebroker.client.errors import check
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from wirebroker.net.client.connection import Body

# DescribeCluster's endpoint_type.
BROKERS: Final = 1
CONTROLLERS: Final = 2
# First versions with types and with fenced brokers.
_FIRST_WITH_TYPES: Final = 1
_FIRST_WITH_FENCED: Final = 2


class Requesting(Protocol):
    """A client that sends a request to any node."""

    async def request(self, key: ApiKey, body: Body, /) -> Any:
        """Return the response."""
        ...


async def describe_cluster(
    client: Requesting,
    *,
    endpoint_type: int = BROKERS,
    fenced: bool = False,
    operations: bool = False,
) -> Any:
    """Return a DescribeClusterResponse without an error.

    `endpoint_type` is that of the bootstrap addresses. `fenced` includes fenced brokers,
    `operations` the operations that the user is allowed.
    """

    def body(version: int) -> dict[str, Any]:
        request: dict[str, Any] = {"include_cluster_authorized_operations": operations}
        if version >= _FIRST_WITH_TYPES:
            request["endpoint_type"] = endpoint_type
        if version >= _FIRST_WITH_FENCED:
            request["include_fenced_brokers"] = fenced
        return request

    answer = await client.request(ApiKey.DESCRIBE_CLUSTER, body)
    check(answer.error_code, "the cluster cannot be described", answer.error_message)
    return answer
