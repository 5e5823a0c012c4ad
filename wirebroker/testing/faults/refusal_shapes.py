"""The error fields of each API's response.

Source of these and other fields: `getErrorResponse` of Kafka's request classes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.codecs.api_keys import API_VERSIONS, ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_LAST_VERSION: Final = 0x7FFF


class Level(NamedTuple):
    """Arrays of a request, and the response array that has one element per requested one."""

    asked: tuple[str, ...]  # `dirs.topics` are the topics of all dirs
    answered: str
    # Response field -> request field; None for the element itself.
    fields: Mapping[str, str | None]


class Shape(NamedTuple):
    """The error fields of a request's parts.

    Attributes:
        levels: From the outermost array to the one with the error.
        also: Values of other fields.
        codes: Errors that it reports; None for all.
        more_errors: Other fields for the error, of other parts of the request.
    """

    levels: tuple[Level, ...]
    also: Mapping[str, Any] = {}
    error: str = "error_code"
    codes: Collection[ErrorCode] | None = None
    versions: range = range(_LAST_VERSION)
    more_errors: tuple[str, ...] = ()


class Top(NamedTuple):
    """The error field of a whole response.

    Attributes:
        codes: Errors that are reported here even if the request has parts.
        is_repeated: Whether errors of parts are repeated here.
    """

    also: Mapping[str, Any] = {}
    versions: range = range(_LAST_VERSION)
    codes: Collection[ErrorCode] = ()
    is_repeated: bool = False


def _level(request_field: str, response_field: str, *fields: str) -> Level:
    return Level((request_field,), response_field, {name: name for name in fields})


def _of(request_field: str, response_field: str, field: str) -> Level:
    return Level((request_field,), response_field, {field: None})


_TOPICS: Final = _level("topics", "topics", "name")
_TOPICS_OR_IDS: Final = _level("topics", "topics", "name", "topic_id")
_PARTITIONS: Final = _level("partitions", "partitions", "partition_index")
_INDEXES: Final = _of("partition_indexes", "partitions", "partition_index")
_SHARED: Final = (_level("topics", "responses", "topic_id"), _PARTITIONS)
_SHARE_STATES: Final = (
    Shape(
        (
            _level("topics", "results", "topic_id"),
            _level("partitions", "partitions", "partition"),
        )
    ),
)
_RESOURCE: Final = ("resource_type", "resource_name")
_NO_OFFSET: Final = {"committed_offset": -1, "committed_leader_epoch": -1}
_NO_RECORDS: Final = {"records": b""}
_NO_NODE: Final = {"node_id": -1, "port": -1}
_OF_FETCHED_OFFSETS: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
    }
)
_OF_DELETED_OFFSETS: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
    }
)
_OF_MEMBERS: Final = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID})
_OF_SHARED_PARTITIONS: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.CORRUPT_MESSAGE,
    }
)
_OF_ACKNOWLEDGEMENTS: Final = frozenset({ErrorCode.INVALID_RECORD_STATE})
_OF_FETCH_SESSIONS: Final = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)

# The first match applies.
SHAPES: Final[dict[ApiKey, tuple[Shape, ...]]] = {
    ApiKey.PRODUCE: (
        Shape(
            (
                _level("topic_data", "responses", "name", "topic_id"),
                _level("partition_data", "partition_responses", "index"),
            ),
            {"base_offset": -1, "log_append_time_ms": -1},
        ),
    ),
    ApiKey.FETCH: (
        Shape(
            (
                _level("topics", "responses", "topic", "topic_id"),
                Level(("partitions",), "partitions", {"partition_index": "partition"}),
            ),
            # librdkafka drops a response whose records are null.
            {"high_watermark": -1, "records": b""},
        ),
    ),
    ApiKey.LIST_OFFSETS: (Shape((_TOPICS, _PARTITIONS)),),
    ApiKey.OFFSET_COMMIT: (Shape((_TOPICS_OR_IDS, _PARTITIONS)),),
    ApiKey.OFFSET_FETCH: (
        Shape(
            (
                _level("groups", "groups", "group_id"),
                _TOPICS_OR_IDS,
                _of("partition_indexes", "partitions", "partition_index"),
            ),
            _NO_OFFSET,
            codes=_OF_FETCHED_OFFSETS,
        ),
        Shape((_level("groups", "groups", "group_id"),)),
        Shape((_TOPICS, _INDEXES), _NO_OFFSET, codes=_OF_FETCHED_OFFSETS),
        Shape((_TOPICS, _INDEXES), _NO_OFFSET, versions=range(2)),
    ),
    ApiKey.FIND_COORDINATOR: (Shape((_of("coordinator_keys", "coordinators", "key"),), _NO_NODE),),
    ApiKey.LEAVE_GROUP: (
        Shape(
            (_level("members", "members", "member_id", "group_instance_id"),),
            codes=_OF_MEMBERS,
            versions=range(3, _LAST_VERSION),
        ),
    ),
    ApiKey.DESCRIBE_GROUPS: (Shape((_of("groups", "groups", "group_id"),)),),
    ApiKey.CREATE_TOPICS: (Shape((_TOPICS,)),),
    ApiKey.DELETE_TOPICS: (
        Shape((_of("topic_names", "responses", "name"),)),
        Shape((_level("topics", "responses", "name", "topic_id"),)),
    ),
    ApiKey.DELETE_RECORDS: (Shape((_TOPICS, _PARTITIONS), {"low_watermark": -1}),),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (
        Shape(
            (_level("topics", "topics", "topic"), _level("partitions", "partitions", "partition"))
        ),
    ),
    ApiKey.ADD_PARTITIONS_TO_TXN: (
        Shape(
            (
                _level("v3_and_below_topics", "results_by_topic_v3_and_below", "name"),
                _of("partitions", "results_by_partition", "partition_index"),
            ),
            error="partition_error_code",
        ),
    ),
    ApiKey.WRITE_TXN_MARKERS: (
        Shape((_level("markers", "markers", "producer_id"), _TOPICS, _INDEXES)),
    ),
    ApiKey.TXN_OFFSET_COMMIT: (Shape((_TOPICS_OR_IDS, _PARTITIONS)),),
    ApiKey.CREATE_ACLS: (Shape((_level("creations", "results"),)),),
    ApiKey.DELETE_ACLS: (Shape((_level("filters", "filter_results"),)),),
    ApiKey.DESCRIBE_CONFIGS: (Shape((_level("resources", "results", *_RESOURCE),)),),
    ApiKey.ALTER_CONFIGS: (Shape((_level("resources", "responses", *_RESOURCE),)),),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (Shape((_level("resources", "responses", *_RESOURCE),)),),
    ApiKey.ALTER_REPLICA_LOG_DIRS: (
        Shape(
            (
                Level(("dirs.topics",), "results", {"topic_name": "name"}),
                _of("partitions", "partitions", "partition_index"),
            )
        ),
    ),
    ApiKey.CREATE_PARTITIONS: (Shape((_level("topics", "results", "name"),)),),
    ApiKey.DELETE_GROUPS: (Shape((_of("groups_names", "results", "group_id"),)),),
    ApiKey.ELECT_LEADERS: (
        Shape(
            (
                _level("topic_partitions", "replica_election_results", "topic"),
                _of("partitions", "partition_result", "partition_id"),
            )
        ),
    ),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: (
        Shape((_level("topics", "responses", "name"), _PARTITIONS)),
    ),
    ApiKey.OFFSET_DELETE: (Shape((_TOPICS, _PARTITIONS), codes=_OF_DELETED_OFFSETS),),
    ApiKey.ALTER_CLIENT_QUOTAS: (Shape((_level("entries", "entries", "entity"),)),),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: (
        Shape((Level(("users",), "results", {"user": "name"}),)),
    ),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: (
        Shape((Level(("deletions", "upsertions"), "results", {"user": "name"}),)),
    ),
    ApiKey.DESCRIBE_PRODUCERS: (Shape((_TOPICS, _INDEXES)),),
    ApiKey.DESCRIBE_TRANSACTIONS: (
        Shape((_of("transactional_ids", "transaction_states", "transactional_id"),)),
    ),
    ApiKey.CONSUMER_GROUP_DESCRIBE: (Shape((_of("group_ids", "groups", "group_id"),)),),
    ApiKey.STREAMS_GROUP_DESCRIBE: (Shape((_of("group_ids", "groups", "group_id"),)),),
    ApiKey.SHARE_GROUP_DESCRIBE: (Shape((_of("group_ids", "groups", "group_id"),)),),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: (Shape((_level("groups", "groups", "group_id"),)),),
    ApiKey.SHARE_FETCH: (
        Shape(_SHARED, _NO_RECORDS, error="acknowledge_error_code", codes=_OF_ACKNOWLEDGEMENTS),
        # Acknowledgements in the request fail as well.
        Shape(
            _SHARED,
            _NO_RECORDS,
            codes=_OF_SHARED_PARTITIONS,
            more_errors=("acknowledge_error_code",),
        ),
    ),
    ApiKey.SHARE_ACKNOWLEDGE: (Shape(_SHARED, codes=_OF_SHARED_PARTITIONS | _OF_ACKNOWLEDGEMENTS),),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: (Shape((_TOPICS,)),),
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: _SHARE_STATES,
    ApiKey.READ_SHARE_GROUP_STATE: _SHARE_STATES,
    ApiKey.WRITE_SHARE_GROUP_STATE: _SHARE_STATES,
    ApiKey.DELETE_SHARE_GROUP_STATE: _SHARE_STATES,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: _SHARE_STATES,
}

# Other APIs have the error in all versions or none, and defaults in other fields.
TOPS: Final[dict[ApiKey, Top]] = {
    ApiKey.FETCH: Top(versions=range(7, _LAST_VERSION), codes=_OF_FETCH_SESSIONS),
    ApiKey.METADATA: Top(
        versions=range(13, _LAST_VERSION), codes=frozenset({ErrorCode.REBOOTSTRAP_REQUIRED})
    ),
    ApiKey.OFFSET_FETCH: Top(versions=range(2, 8)),
    ApiKey.FIND_COORDINATOR: Top(_NO_NODE, versions=range(4)),
    ApiKey.INIT_PRODUCER_ID: Top({"producer_epoch": -1}),
    ApiKey.ADD_PARTITIONS_TO_TXN: Top(versions=range(4, _LAST_VERSION)),
    ApiKey.DESCRIBE_LOG_DIRS: Top(versions=range(3, _LAST_VERSION)),
    ApiKey.CREATE_DELEGATION_TOKEN: Top(
        {"issue_timestamp_ms": -1, "expiry_timestamp_ms": -1, "max_timestamp_ms": -1}
    ),
    ApiKey.ELECT_LEADERS: Top(versions=range(1, _LAST_VERSION), is_repeated=True),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: Top(is_repeated=True),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: Top({"entries": None}),
}


def supported_versions(key: ApiKey) -> list[dict[str, int]]:
    """Return an ApiVersions entry."""
    versions = API_VERSIONS[key]
    return [
        {
            "api_key": int(key),
            "min_version": versions.min_version,
            "max_version": versions.max_version,
        }
    ]
