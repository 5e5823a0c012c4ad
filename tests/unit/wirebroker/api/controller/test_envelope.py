"""Which requests an Envelope may contain."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Final

import pytest

from wirebroker.api.controller.envelope import unwrap
from wirebroker.codecs.api_keys import API_VERSIONS, ApiKey
from wirebroker.codecs.client_frames import request_header
from wirebroker.codecs.envelope import Principal, encode_host, encode_principal
from wirebroker.codecs.errors import ErrorCode

# Apache Kafka 4.4.0: the ApiKeys with `forwardable`.
FORWARDABLE: Final = frozenset(
    {
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.CREATE_ACLS,
        ApiKey.DELETE_ACLS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.ELECT_LEADERS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        ApiKey.ALTER_CLIENT_QUOTAS,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.DESCRIBE_QUORUM,
        ApiKey.UPDATE_FEATURES,
        ApiKey.UNREGISTER_BROKER,
        ApiKey.ALLOCATE_PRODUCER_IDS,
        ApiKey.ADD_RAFT_VOTER,
        ApiKey.REMOVE_RAFT_VOTER,
        ApiKey.UNREGISTER_CONTROLLER,
    }
)


@pytest.mark.parametrize("key", sorted(API_VERSIONS), ids=lambda key: key.name)
async def test_only_forwardable_requests_are_read(key: ApiKey) -> None:
    envelope = SimpleNamespace(
        request_principal=encode_principal(Principal()),
        client_host_address=encode_host("127.0.0.1"),
        # The body is missing, which is an error only of a request that may be forwarded.
        request_data=request_header(key, API_VERSIONS[key].max_version, 1, b"c"),
    )
    request: Any = SimpleNamespace(session=SimpleNamespace(peer="127.0.0.1:1"))
    controller: Any = None
    response = await unwrap(controller, request, envelope)
    error = ErrorCode.UNSUPPORTED_VERSION if key in FORWARDABLE else ErrorCode.INVALID_REQUEST
    assert response == {"error_code": int(error), "response_data": None}
