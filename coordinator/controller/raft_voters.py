"""AddRaftVoter and RemoveRaftVoter, which are refused: the voter is static (kraft.version 0).

Source: Kafka's AddVoterHandler, RemoveVoterHandler; KIP-853.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.permissions import ALTER_CLUSTER, DESCRIBE_CLUSTER
from wirebroker.coordinator.controller.requests.operations import declare, refused_with_message

if TYPE_CHECKING:
    from wirebroker.coordinator.operation import Operation


def change_voters() -> Operation[dict[str, Any]]:
    """Refuse the request.

    Raises:
        KafkaError: UNSUPPORTED_VERSION.
    """
    yield
    raise KafkaError(
        ErrorCode.UNSUPPORTED_VERSION,
        "The voters of this cluster are static: its kraft.version is 0.",
    )


for _key in (ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER):
    declare(
        _key,
        lambda _: change_voters(),
        permissions=(ALTER_CLUSTER,),
        refuse=refused_with_message,
    )
declare(ApiKey.DESCRIBE_QUORUM, None, permissions=(DESCRIBE_CLUSTER,), refuse=refused_with_message)
