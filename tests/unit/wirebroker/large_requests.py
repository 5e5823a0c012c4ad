"""Every request that names many things, by API key: made of names and of partitions' numbers.

`LARGE_REQUESTS` says how a request with given names (of topics, groups, ids, whatever the key
names) and given partitions of each is made; `NAMELESS` are the keys that have no such array. A key
that is in neither fails test_large_requests.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tests.support.batches import batch
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Names = Sequence[str]
    Indexes = Sequence[int]
    Make = Callable[[Names, Indexes], dict[str, Any]]

TOPIC = "a-topic-with-a-name-of-usual-length"
GROUP = "a-group-with-a-name-of-usual-length"
TRANSACTIONAL_ID = "an-id-with-a-name-of-usual-length"


class LargeRequest(NamedTuple):
    """How a request of a key and version is made of names and numbers.

    Attributes:
        has_indexes: Whether numbers of partitions are in it.
        most_names: How many names may be in it: one, or fewer than the others have where the
            request is parsed at once and has a bound of its own.
    """

    key: ApiKey
    version: int
    make: Make
    has_indexes: bool = False
    most_names: int = 1_000_000


NAMELESS = frozenset(
    {
        ApiKey.HEARTBEAT,
        ApiKey.SASL_HANDSHAKE,
        ApiKey.SASL_AUTHENTICATE,
        ApiKey.API_VERSIONS,
        ApiKey.INIT_PRODUCER_ID,
        ApiKey.ADD_OFFSETS_TO_TXN,
        ApiKey.END_TXN,
        ApiKey.DESCRIBE_ACLS,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.DESCRIBE_CLUSTER,
        ApiKey.UNREGISTER_BROKER,
        ApiKey.REMOVE_RAFT_VOTER,
        ApiKey.ADD_RAFT_VOTER,  # its listeners are those of one controller
    }
)


def _topics(names: Names, *, name: str = "name", **fields: Any) -> list[dict[str, Any]]:
    return [{name: each, **fields} for each in names]


def _partitions(indexes: Indexes, *, index: str = "partition_index", **fields: Any) -> Any:
    return [{index: each, **fields} for each in indexes]


def _commits(indexes: Indexes) -> Any:
    return _partitions(indexes, committed_offset=1, committed_metadata="")


def _produce(names: Names, indexes: Indexes) -> dict[str, Any]:
    data = [{"index": each, "records": batch(b"v")} for each in indexes]
    return {"acks": 1, "timeout_ms": 1_000, "topic_data": _topics(names, partition_data=data)}


def _fetch(names: Names, indexes: Indexes) -> dict[str, Any]:
    asked = _partitions(indexes, index="partition", fetch_offset=0, partition_max_bytes=100)
    topics = _topics(names, name="topic", partitions=asked)
    return {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 1_000, "topics": topics}


def _by_partitions(names: Names, indexes: Indexes, **fields: Any) -> dict[str, Any]:
    return {"topics": _topics(names, partitions=_partitions(indexes, **fields))}


def _configs(names: Names, indexes: Indexes) -> dict[str, Any]:
    del indexes
    configs = [{"name": "retention.ms", "value": "1"}]
    resources = [{"resource_type": 2, "resource_name": n, "configs": configs} for n in names]
    return {"resources": resources, "validate_only": True}


def _acls(names: Names, suffix: str) -> list[dict[str, Any]]:
    return [
        {
            f"resource_type{suffix}": 2,
            f"resource_name{suffix}": each,
            "pattern_type_filter" if suffix else "resource_pattern_type": 3,
            f"principal{suffix}": "User:a",
            f"host{suffix}": "*",
            "operation": 3,
            "permission_type": 3,
        }
        for each in names
    ]


def _markers(names: Names, indexes: Indexes) -> dict[str, Any]:
    marker = {"producer_id": 7, "producer_epoch": 0, "transaction_result": True}
    topics = _topics(names, partition_indexes=list(indexes))
    return {"markers": [{**marker, "topics": topics}]}


def _claims(names: Names, indexes: Indexes) -> dict[str, Any]:
    return {
        "v3_and_below_transactional_id": TRANSACTIONAL_ID,
        "v3_and_below_topics": _topics(names, partitions=list(indexes)),
    }


def _brokers_claims(names: Names, indexes: Indexes) -> dict[str, Any]:
    topics = _topics([names[0]], partitions=list(indexes))
    claims = [
        {"transactional_id": each, "producer_id": 1, "verify_only": True, "topics": topics}
        for each in names
    ]
    return {"transactions": claims}


def _assignments(indexes: Indexes) -> list[dict[str, Any]]:
    return [{"partition_index": each, "broker_ids": [1]} for each in indexes]


def _groups(names: Names, indexes: Indexes) -> dict[str, Any]:
    topics = None if len(indexes) == 1 else _topics([names[0]], partition_indexes=list(indexes))
    return {"groups": [{"group_id": each, "topics": topics} for each in names]}


LARGE_REQUESTS = (
    LargeRequest(ApiKey.PRODUCE, 12, _produce, most_names=90),
    LargeRequest(ApiKey.FETCH, 12, _fetch, has_indexes=True),
    LargeRequest(
        ApiKey.LIST_OFFSETS,
        7,
        lambda n, i: {"replica_id": -1, **_by_partitions(n, i, timestamp=1_000)},
        has_indexes=True,
    ),
    LargeRequest(ApiKey.METADATA, 12, lambda n, _: {"topics": _topics(n)}),
    LargeRequest(
        ApiKey.OFFSET_COMMIT,
        8,
        lambda n, i: {"group_id": GROUP, "topics": _topics(n, partitions=_commits(i))},
        has_indexes=True,
    ),
    LargeRequest(
        ApiKey.OFFSET_FETCH,
        7,
        lambda n, i: {"group_id": GROUP, "topics": _topics(n, partition_indexes=list(i))},
        has_indexes=True,
    ),
    LargeRequest(ApiKey.OFFSET_FETCH, 9, _groups, has_indexes=True),
    LargeRequest(
        ApiKey.FIND_COORDINATOR, 4, lambda n, _: {"key_type": 0, "coordinator_keys": list(n)}
    ),
    LargeRequest(
        ApiKey.JOIN_GROUP,
        5,
        lambda n, _: {
            "group_id": GROUP + "-of-members",
            "session_timeout_ms": 10_000,
            "rebalance_timeout_ms": 10_000,
            "protocol_type": "consumer",
            "protocols": [{"name": each, "metadata": b""} for each in n],
        },
    ),
    LargeRequest(
        ApiKey.LEAVE_GROUP,
        4,
        lambda n, _: {"group_id": GROUP, "members": [{"member_id": each} for each in n]},
    ),
    LargeRequest(
        ApiKey.SYNC_GROUP,
        4,
        lambda n, _: {
            "group_id": GROUP,
            "assignments": [{"member_id": each, "assignment": b""} for each in n],
        },
    ),
    LargeRequest(ApiKey.DESCRIBE_GROUPS, 5, lambda n, _: {"groups": list(n)}),
    LargeRequest(
        ApiKey.LIST_GROUPS, 5, lambda n, _: {"states_filter": list(n), "types_filter": list(n)}
    ),
    LargeRequest(
        ApiKey.CREATE_TOPICS,
        7,
        lambda n, i: {
            "topics": _topics(
                n, num_partitions=-1, replication_factor=-1, assignments=_assignments(i)
            ),
            "timeout_ms": 1_000,
            "validate_only": True,
        },
        has_indexes=True,
        most_names=2_000,  # of at most 10,000 partitions
    ),
    LargeRequest(
        ApiKey.DELETE_TOPICS,
        5,
        lambda n, _: {"topic_names": [f"no-{each}"[:250] for each in n], "timeout_ms": 1_000},
    ),
    LargeRequest(
        ApiKey.DELETE_RECORDS,
        2,
        lambda n, i: {"timeout_ms": 1, **_by_partitions(n, i, offset=0)},
        has_indexes=True,
    ),
    LargeRequest(
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        4,
        lambda n, i: {
            "replica_id": -1,
            "topics": _topics(
                n, name="topic", partitions=_partitions(i, index="partition", leader_epoch=0)
            ),
        },
        has_indexes=True,
    ),
    LargeRequest(ApiKey.ADD_PARTITIONS_TO_TXN, 3, _claims, has_indexes=True),
    LargeRequest(ApiKey.ADD_PARTITIONS_TO_TXN, 5, _brokers_claims, has_indexes=True),
    LargeRequest(ApiKey.WRITE_TXN_MARKERS, 1, _markers, has_indexes=True),
    LargeRequest(
        ApiKey.TXN_OFFSET_COMMIT,
        3,
        lambda n, i: {
            "transactional_id": TRANSACTIONAL_ID,
            "group_id": GROUP,
            "topics": _topics(n, partitions=_commits(i)),
        },
        has_indexes=True,
    ),
    LargeRequest(ApiKey.CREATE_ACLS, 3, lambda n, _: {"creations": _acls(n, "")}),
    LargeRequest(ApiKey.DELETE_ACLS, 3, lambda n, _: {"filters": _acls(n, "_filter")}),
    LargeRequest(
        ApiKey.DESCRIBE_CONFIGS,
        4,
        lambda n, _: {"resources": [{"resource_type": 2, "resource_name": each} for each in n]},
    ),
    LargeRequest(ApiKey.ALTER_CONFIGS, 2, _configs),
    LargeRequest(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, _configs),
    LargeRequest(
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        2,
        lambda n, i: {"dirs": [{"path": "/a", "topics": _topics(n, partitions=list(i))}]},
        has_indexes=True,
    ),
    LargeRequest(
        ApiKey.DESCRIBE_LOG_DIRS,
        4,
        lambda n, i: {"topics": _topics(n, name="topic", partitions=list(i))},
        has_indexes=True,
    ),
    LargeRequest(
        ApiKey.CREATE_PARTITIONS,
        3,
        lambda n, _: {
            "topics": _topics(n, count=60, assignments=None),
            "timeout_ms": 1_000,
            "validate_only": True,
        },
    ),
    LargeRequest(
        ApiKey.CREATE_DELEGATION_TOKEN,
        2,
        lambda n, _: {
            "renewers": [{"principal_type": "User", "principal_name": each} for each in n]
        },
    ),
    LargeRequest(
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
        2,
        lambda n, _: {"owners": [{"principal_type": "User", "principal_name": each} for each in n]},
    ),
    LargeRequest(ApiKey.DELETE_GROUPS, 2, lambda n, _: {"groups_names": list(n)}),
    LargeRequest(
        ApiKey.ELECT_LEADERS,
        2,
        lambda n, i: {
            "election_type": 0,
            "topic_partitions": _topics(n, name="topic", partitions=list(i)),
            "timeout_ms": 1_000,
        },
        has_indexes=True,
    ),
    LargeRequest(
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        0,
        lambda n, i: {"timeout_ms": 1_000, **_by_partitions(n, i, replicas=None)},
        has_indexes=True,
    ),
    LargeRequest(
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        0,
        lambda n, i: {"timeout_ms": 1_000, "topics": _topics(n, partition_indexes=list(i))},
        has_indexes=True,
    ),
    LargeRequest(
        ApiKey.OFFSET_DELETE,
        0,
        lambda n, i: {"group_id": GROUP, **_by_partitions(n, i)},
        has_indexes=True,
    ),
    LargeRequest(
        ApiKey.DESCRIBE_CLIENT_QUOTAS,
        1,
        lambda n, _: {
            "components": [{"entity_type": "user", "match_type": 0, "match": each} for each in n]
        },
    ),
    LargeRequest(
        ApiKey.ALTER_CLIENT_QUOTAS,
        1,
        lambda n, _: {
            "entries": [
                {
                    "entity": [{"entity_type": "user", "entity_name": each}],
                    "ops": [{"key": "producer_byte_rate", "value": 1e6}],
                }
                for each in n
            ],
            "validate_only": True,
        },
    ),
    LargeRequest(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, lambda n, _: {"users": _topics(n)}),
    LargeRequest(
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        0,
        lambda n, _: {"deletions": _topics(n, mechanism=1), "upsertions": []},
    ),
    LargeRequest(
        ApiKey.DESCRIBE_QUORUM,
        2,
        lambda n, i: {"topics": _topics(n, name="topic_name", partitions=_partitions(i))},
        has_indexes=True,
    ),
    LargeRequest(
        ApiKey.UPDATE_FEATURES,
        1,
        lambda n, _: {
            "feature_updates": [
                {"feature": each, "max_version_level": 1, "upgrade_type": 1} for each in n
            ],
            "validate_only": True,
        },
    ),
    LargeRequest(
        ApiKey.DESCRIBE_PRODUCERS,
        0,
        lambda n, i: {"topics": _topics(n, partition_indexes=list(i))},
        has_indexes=True,
    ),
    LargeRequest(ApiKey.DESCRIBE_TRANSACTIONS, 0, lambda n, _: {"transactional_ids": list(n)}),
    LargeRequest(
        ApiKey.LIST_TRANSACTIONS,
        1,
        lambda n, i: {"state_filters": list(n), "producer_id_filters": list(i)},
        has_indexes=True,
    ),
    LargeRequest(
        ApiKey.LIST_CONFIG_RESOURCES,
        1,
        lambda _, i: {"resource_types": [2 for _ in i]},
        has_indexes=True,
        most_names=1,
    ),
    LargeRequest(
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        0,
        lambda n, _: {"topics": _topics(n), "response_partition_limit": 2_000},
    ),
)

# What the broker of the tests has of a key's names; of all others it has the topic.
KNOWN_NAMES = {
    ApiKey.OFFSET_FETCH: GROUP,
    ApiKey.FIND_COORDINATOR: GROUP,
    ApiKey.DESCRIBE_GROUPS: GROUP,
    ApiKey.DESCRIBE_TRANSACTIONS: TRANSACTIONAL_ID,
}


def known_name(request: LargeRequest) -> str:
    """Return a name that the broker of the tests knows."""
    if request.key is ApiKey.OFFSET_FETCH and request.version < 8:
        return TOPIC
    return KNOWN_NAMES.get(request.key, TOPIC)
