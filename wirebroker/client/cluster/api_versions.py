"""API versions of nodes, as Kafka's tools print them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.base.text import camel_case
from wirebroker.client.errors import check
from wirebroker.codecs.api_keys import API_VERSIONS, CONTROLLER_API_VERSIONS, ApiKey

if TYPE_CHECKING:
    from wirebroker.client.kafka_client import KafkaClient

# Brokers serve these only with a plugin for clients' metrics (KIP-714).
_TELEMETRY: Final = frozenset({ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY})
_KNOWN: Final = frozenset(map(int, ApiKey))
# Body of an ApiVersions request.
OUR_SOFTWARE: Final = {"client_software_name": "wirebroker", "client_software_version": "1"}


async def api_versions_of(client: KafkaClient, node_id: int) -> Any:
    """Return a node's ApiVersionsResponse."""
    answer = await client.request_of(node_id, ApiKey.API_VERSIONS, OUR_SOFTWARE)
    check(answer.error_code, f"the versions of node {node_id} cannot be read")
    return answer


def version_lines(answer: Any) -> list[str]:
    """Return a line for each API that the node serves or this client knows."""
    served = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
    return [
        f"{_name(key)}({key}): {_range(key, served.get(key))}"
        for key in sorted({*served, *map(int, API_VERSIONS), *_TELEMETRY})
    ]


def _name(key: int) -> str:
    return camel_case(ApiKey(key).name) if key in _KNOWN else "UNKNOWN"


def _range(key: int, served: tuple[int, int] | None) -> str:
    if served is None:
        return "UNSUPPORTED"
    lowest, highest = served
    text = f"{lowest}" if lowest == highest else f"{lowest} to {highest}"
    supported = (
        {**CONTROLLER_API_VERSIONS, **API_VERSIONS}.get(ApiKey(key)) if key in _KNOWN else None
    )
    if supported is None:
        return text
    if supported.max_version < lowest:
        return f"{text} [unusable: node too new]"
    if highest < supported.min_version:
        return f"{text} [unusable: node too old]"
    return f"{text} [usable: {min(supported.max_version, highest)}]"
