"""Answers that report an error in place of a handler's, in the form of each request.

Where an error stands in an answer: at its top, or at each of the things that were asked about. The
names of the fields are those of Kafka's message definitions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.messages import encode_response, response_message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.codecs.errors import ErrorCode


class _Level(NamedTuple):
    """An array of a request, and the one that answers it."""

    asked: str
    answered: str
    # Fields of an answered element -> field of the asked one; None: the element itself.
    fields: Mapping[str, str | None]


class _Shape(NamedTuple):
    """Where the error of a request's parts stands."""

    levels: tuple[_Level, ...]
    also: Mapping[str, Any] = {}  # what stands beside an error
    error: str = "error_code"


def _level(asked: str, answered: str, *fields: str) -> _Level:
    return _Level(asked, answered, {name: name for name in fields})


_TOPIC_PARTITIONS: Final = (
    _level("topics", "topics", "name"),
    _level("partitions", "partitions", "partition_index"),
)
_RESOURCES: Final = ("resource_type", "resource_name")

_SHAPES: Final[dict[ApiKey, tuple[_Shape, ...]]] = {
    ApiKey.PRODUCE: (
        _Shape(
            (
                _level("topic_data", "responses", "name", "topic_id"),
                _level("partition_data", "partition_responses", "index"),
            ),
            {"base_offset": -1, "log_append_time_ms": -1},
        ),
    ),
    ApiKey.FETCH: (
        _Shape(
            (
                _level("topics", "responses", "topic", "topic_id"),
                _Level("partitions", "partitions", {"partition_index": "partition"}),
            ),
            {"high_watermark": -1, "last_stable_offset": -1},
        ),
    ),
    ApiKey.LIST_OFFSETS: (_Shape(_TOPIC_PARTITIONS, {"timestamp": -1, "offset": -1}),),
    ApiKey.OFFSET_COMMIT: (
        _Shape((_level("topics", "topics", "name", "topic_id"), _TOPIC_PARTITIONS[1])),
    ),
    ApiKey.TXN_OFFSET_COMMIT: (_Shape(_TOPIC_PARTITIONS),),
    ApiKey.DELETE_RECORDS: (_Shape(_TOPIC_PARTITIONS, {"low_watermark": -1}),),
    ApiKey.OFFSET_FETCH: (_Shape((_level("groups", "groups", "group_id"),)),),
    ApiKey.FIND_COORDINATOR: (
        _Shape(
            (_Level("coordinator_keys", "coordinators", {"key": None}),),
            {"node_id": -1, "port": -1},
        ),
    ),
    ApiKey.ADD_PARTITIONS_TO_TXN: (
        _Shape(
            (
                _level("v3_and_below_topics", "results_by_topic_v3_and_below", "name"),
                _Level("partitions", "results_by_partition", {"partition_index": None}),
            ),
            error="partition_error_code",
        ),
    ),
    ApiKey.CREATE_TOPICS: (_Shape((_level("topics", "topics", "name"),)),),
    ApiKey.CREATE_PARTITIONS: (_Shape((_level("topics", "results", "name"),)),),
    ApiKey.DELETE_TOPICS: (
        _Shape((_Level("topic_names", "responses", {"name": None}),)),
        _Shape((_level("topics", "responses", "name", "topic_id"),)),
    ),
    ApiKey.DELETE_GROUPS: (_Shape((_Level("groups_names", "results", {"group_id": None}),)),),
    ApiKey.DESCRIBE_GROUPS: (_Shape((_Level("groups", "groups", {"group_id": None}),)),),
    ApiKey.DESCRIBE_CONFIGS: (_Shape((_level("resources", "results", *_RESOURCES),)),),
    ApiKey.ALTER_CONFIGS: (_Shape((_level("resources", "responses", *_RESOURCES),)),),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (_Shape((_level("resources", "responses", *_RESOURCES),)),),
}


def can_be_refused(key: ApiKey) -> bool:
    """Tell whether the answer to a request can report any error."""
    return key in _SHAPES or _has_one_error(key)


def refusal_of(key: ApiKey, version: int, body: Any, code: ErrorCode) -> bytes:
    """Return the body of an answer that refuses all that a request is about.

    Args:
        key: Which request, of those that can be refused.
        version: Its version.
        body: Its decoded body.
        code: What is reported.
    """
    for shape in _SHAPES.get(key, ()):
        first = shape.levels[0]
        asked = getattr(body, first.asked)
        if asked:
            answer = {first.answered: _answered(asked, shape.levels, shape, code)}
            return encode_response(key, version, answer)
    if _has_one_error(key):
        return encode_response(key, version, {"error_code": int(code)})
    return encode_response(key, version, {})


def _has_one_error(key: ApiKey) -> bool:
    return "error_code" in response_message(key).struct_class.FIELD_NAMES


def _answered(
    asked: Any, levels: tuple[_Level, ...], shape: _Shape, code: ErrorCode
) -> list[dict[str, Any]]:
    level, *below = levels
    answered: list[dict[str, Any]] = []
    for each in asked or ():
        row = {
            name: each if source is None else getattr(each, source)
            for name, source in level.fields.items()
        }
        if below:
            inner = getattr(each, below[0].asked)
            row[below[0].answered] = _answered(inner, tuple(below), shape, code)
        else:
            row |= {shape.error: int(code), **shape.also}
        answered.append(row)
    return answered
