"""Voters of the quorum: addition and removal (KIP-853)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.client.errors import check
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.config.listeners.listeners import Address

_FIRST_WITH_ACK: Final = 1


class AddedVoter(NamedTuple):
    """A controller with its metadata log directory, and its listeners by name."""

    node_id: int
    directory_id: bytes
    endpoints: Mapping[str, Address]


async def add_voter(client: KafkaClient, voter: AddedVoter) -> None:
    """Make a controller a voter; return when the other voters have committed that."""
    listeners = [
        {"name": name, "host": endpoint.host, "port": endpoint.port}
        for name, endpoint in voter.endpoints.items()
    ]

    def body(version: int) -> dict[str, Any]:
        request = {
            "cluster_id": None,
            "timeout_ms": int(client.timeout_s * 1000),
            "voter_id": voter.node_id,
            "voter_directory_id": voter.directory_id,
            "listeners": listeners,
        }
        return request | ({"ack_when_committed": True} if version >= _FIRST_WITH_ACK else {})

    answer = await client.request_of_controller(ApiKey.ADD_RAFT_VOTER, body)
    check(answer.error_code, f"controller {voter.node_id} cannot be added", answer.error_message)


async def remove_voter(client: KafkaClient, node_id: int, directory_id: bytes) -> None:
    """Remove a controller from the voters."""
    body = {"cluster_id": None, "voter_id": node_id, "voter_directory_id": directory_id}
    answer = await client.request_of_controller(ApiKey.REMOVE_RAFT_VOTER, body)
    check(answer.error_code, f"controller {node_id} cannot be removed", answer.error_message)
