"""Error responses for all APIs (refusal_shapes.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.messages import encode_response, response_message
from wirebroker.codecs.values import Struct
from wirebroker.testing.faults.refusal_shapes import SHAPES, TOPS, Shape, Top, supported_versions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wirebroker.testing.faults.refusal_shapes import Level

_MESSAGE: Final = "a test has injected this error"
_ANY_TOP: Final = Top()
# Since this version, JoinGroup has null for no protocol.
_NULL_PROTOCOL_VERSION: Final = 7
# DescribeGroups has a message since this version.
_GROUP_MESSAGE_VERSION: Final = 6


def can_be_refused(key: ApiKey) -> bool:
    """Return whether an API's response can report any error."""
    return key in SHAPES or _has_one_error(key)


def refusal_of(key: ApiKey, version: int, body: Any, code: ErrorCode) -> bytes:
    """Return a response body with an error for everything in a decoded request."""
    if key == ApiKey.API_VERSIONS and code == ErrorCode.UNSUPPORTED_VERSION:
        # KIP-511: any client can read version 0.
        return encode_response(key, 0, {"error_code": code, "api_keys": supported_versions(key)})
    is_whole = is_reported_at_top(key, version, code)
    response = {} if is_whole else _refused_parts(key, version, body, code)
    top = TOPS.get(key, _ANY_TOP)
    if _has_one_error(key) and version in top.versions and (not response or top.is_repeated):
        response |= {"error_code": int(code), **top.also, **_from_request(key, version, body)}
    elif not response and key == ApiKey.DESCRIBE_LOG_DIRS:
        response = {"results": [{"error_code": int(code)}]}
    answer = response_message(key).struct_class(**response)
    if key != ApiKey.DESCRIBE_GROUPS or version >= _GROUP_MESSAGE_VERSION:
        _explain(answer)
    return encode_response(key, version, answer)


def refuse_metadata(version: int, response: Any, code: ErrorCode) -> None:
    """Put an error into a decoded Metadata response, which must name the brokers."""
    is_whole = is_reported_at_top(ApiKey.METADATA, version, code)
    if version in TOPS[ApiKey.METADATA].versions and (is_whole or not response.topics):
        response.error_code = int(code)
    for topic in () if is_whole else response.topics:
        topic.error_code, topic.partitions = int(code), []


def is_reported_at_top(key: ApiKey, version: int, code: ErrorCode) -> bool:
    """Return whether an error concerns the whole request."""
    top = TOPS.get(key, _ANY_TOP)
    return version in top.versions and code in top.codes


def _explain(struct: Struct) -> None:
    """Set all error messages: librdkafka's admin client crashes if some are null."""
    names = struct.FIELD_NAMES
    if "error_message" in names and getattr(struct, "error_code", False):
        struct.error_message = _MESSAGE  # type: ignore[attr-defined]
    for name in names:
        value = getattr(struct, name)
        if value.__class__ is list:
            for element in value:
                if isinstance(element, Struct):
                    _explain(element)


def _has_one_error(key: ApiKey) -> bool:
    return "error_code" in response_message(key).struct_class.FIELD_NAMES


def _from_request(key: ApiKey, version: int, body: Any) -> dict[str, Any]:
    if key != ApiKey.JOIN_GROUP:
        return {}
    protocol = None if version >= _NULL_PROTOCOL_VERSION else ""
    return {"member_id": body.member_id, "protocol_name": protocol}


def _refused_parts(key: ApiKey, version: int, body: Any, code: ErrorCode) -> dict[str, Any]:
    """Return fields with an error for each part, if there are parts."""
    for shape in SHAPES.get(key, ()):
        if version in shape.versions and (shape.codes is None or code in shape.codes):
            last = len(shape.levels) - 1
            if next(_elements(body, shape.levels, last), None) is not None:
                first = shape.levels[0]
                return {first.answered: _refused_rows(body, shape.levels, shape, code)}
    return {}


def _elements(parent: Any, levels: tuple[Level, ...], depth: int) -> Iterator[Any]:
    for element in _requested_elements(parent, levels[0]):
        if depth == 0:
            yield element
        else:
            yield from _elements(element, levels[1:], depth - 1)


def _requested_elements(parent: Any, level: Level) -> Iterator[Any]:
    for path in level.asked:
        outer, _, inner = path.partition(".")
        for element in getattr(parent, outer) or ():
            if inner:
                yield from getattr(element, inner)
            else:
                yield element


def _refused_rows(
    parent: Any, levels: tuple[Level, ...], shape: Shape, code: ErrorCode
) -> list[dict[str, Any]]:
    level, *below = levels
    rows: list[dict[str, Any]] = []
    for element in _requested_elements(parent, level):
        row = {name: _copied(element, source) for name, source in level.fields.items()}
        if below:
            row[below[0].answered] = _refused_rows(element, tuple(below), shape, code)
        else:
            row |= dict.fromkeys((shape.error, *shape.more_errors), int(code)) | dict(shape.also)
        rows.append(row)
    if len(level.asked) > 1:  # such as a user with a deletion and an upsertion
        return list({tuple(row.items()): row for row in rows}.values())
    return rows


def _copied(element: Any, field: str | None) -> Any:
    value = element if field is None else getattr(element, field)
    return [struct.as_dict() for struct in value] if value.__class__ is list else value
