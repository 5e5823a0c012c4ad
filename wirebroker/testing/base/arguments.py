"""Type checks for the arguments of public functions, by parameter name.

    @checked
    def produce(self, topic: str, value: Content, ...): ...

    produce("orders", {"a": 1})
    TypeError: produce(): value must be text, bytes or None, not the dict {'a': 1}; encode it first

None is allowed where it is the default.
"""

from __future__ import annotations

import datetime
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from os import PathLike
from typing import Any, Final, NamedTuple, ParamSpec, TypeVar, cast

from wirebroker.testing.data.snapshots import Snapshot

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")

_SHOWN: Final = 60


class _Kind(NamedTuple):
    text: str  # completes "must be …"
    fits: Callable[[Any], bool]
    hint: str = ""  # how to correct a value that does not fit


def checked(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Wrap a function to raise TypeError for a wrong argument; pytest hides the frame."""
    signature = inspect.signature(function)
    owner, _, name = function.__qualname__.rpartition(".")
    label = owner if name in {"__init__", "__call__"} else name
    unset = {
        parameter.name for parameter in signature.parameters.values() if parameter.default is None
    }

    @functools.wraps(function)
    def call(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        __tracebackhide__ = True
        try:
            arguments = signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            refusal = TypeError(f"{label}(): {error}")
        else:
            for argument, value in arguments.items():
                if argument in _KINDS and not (value is None and argument in unset):
                    check_argument(label, argument, value)
            return function(*args, **kwargs)
        raise refusal

    return call


def check_argument(function: str, name: str, value: Any) -> None:
    """Raise TypeError for a wrong argument."""
    __tracebackhide__ = True
    kind = _KINDS.get(f"{function}.{name}") or _KINDS[name]
    if not kind.fits(value):
        text = repr(value)
        text = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
        description = "None" if value is None else f"the {type(value).__name__} {text}"
        hint = f"; {kind.hint}" if kind.hint else ""
        raise TypeError(f"{function}(): {name} must be {kind.text}, not {description}{hint}")


class NodeMarker:
    """Base class of `ClusterNode`, for the checks."""

    __slots__ = ()


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_name(value: Any) -> bool:
    return isinstance(value, str | Enum)


def _is_content(value: Any) -> bool:
    return value is None or isinstance(value, str | bytes | bytearray | memoryview)


def _is_path(value: Any) -> bool:
    return isinstance(value, str | PathLike)


def _is_snapshot(value: Any) -> bool:
    return isinstance(value, Snapshot) or _is_path(value)


def _is_config(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(name, str) and isinstance(setting, str | int | float | bool)
        for name, setting in cast("Mapping[object, object]", value).items()
    )


def _are_topics(value: Any) -> bool:
    if isinstance(value, Mapping):
        topics = cast("Mapping[object, object]", value)
        return all(_is_text(name) and _is_integer(count) for name, count in topics.items())
    return isinstance(value, list | tuple) and all(map(_is_text, cast("list[Any]", value)))


def _are_headers(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(map(_is_header, cast("Mapping[object, object]", value).items()))
    if isinstance(value, list | tuple):
        return all(map(_is_header, cast("list[Any]", value)))
    # `produce` checks an iterator's elements.
    return isinstance(value, Iterable) and not isinstance(value, str | bytes)


def _is_header(value: Any) -> bool:
    if not isinstance(value, tuple | list):
        return False
    pair = cast("tuple[Any, ...]", value)
    return len(pair) == 2 and _is_text(pair[0]) and _is_content(pair[1])


def _are_expected(value: Any) -> bool:
    return all(_is_content(record) or isinstance(record, Mapping) for record in value)


def _is_time(value: Any) -> bool:
    return _is_integer(value) or isinstance(value, datetime.datetime)


def _is_node(value: Any) -> bool:
    return _is_integer(value) or _is_cluster_node(value)


def _is_cluster_node(value: Any) -> bool:
    return isinstance(value, NodeMarker)


_TEXT: Final = _Kind("text", _is_text)
_WHOLE: Final = _Kind("a whole number", _is_integer)
_NUMBER: Final = _Kind("a number", _is_number)
_FLAG: Final = _Kind("True or False", _is_flag)
_CONTENT: Final = _Kind(
    "text, bytes or None", _is_content, "encode it first, such as json.dumps(value)"
)
_NAME: Final = _Kind("a name or an enum's member", _is_name)
_TOPICS: Final = _Kind(
    "a mapping of topic names to numbers of partitions, or a list of names",
    _are_topics,
    'such as {"orders": 3} or ["orders"]',
)
_PATH: Final = _Kind("a path", _is_path)
_MOMENT: Final = _Kind("milliseconds since 1970 or a datetime", _is_time)

_KINDS: Final[dict[str, _Kind]] = {
    **dict.fromkeys(("name", "topic", "group", "client_id", "client", "image"), _TEXT),
    **dict.fromkeys(("when", "sasl", "cluster_id"), _TEXT),
    **dict.fromkeys(("partitions", "partition", "count", "most", "port", "nodes"), _WHOLE),
    **dict.fromkeys(("timeout", "days", "hours", "minutes", "seconds", "milliseconds"), _NUMBER),
    **dict.fromkeys(("read_committed", "any_order", "own_process", "tls", "engine"), _FLAG),
    **dict.fromkeys(("value", "key"), _CONTENT),
    **dict.fromkeys(("api", "error"), _NAME),
    **dict.fromkeys(("timestamp", "moment"), _MOMENT),
    **dict.fromkeys(("node", "to"), _Kind("a node or its id", _is_node)),
    "other_than": _Kind("a node", _is_cluster_node),
    "directory": _PATH,
    "snapshot": _Kind("a snapshot or a path", _is_snapshot),
    "config": _Kind(
        "a mapping of config names to text, numbers or booleans",
        _is_config,
        'such as {"retention.ms": 1000}',
    ),
    "topics": _TOPICS,
    "create_topics.partitions": _TOPICS,
    "headers": _Kind("a mapping of names to text or bytes, or a list of pairs", _are_headers),
    "expected": _Kind(
        "text, bytes, None or a dict for each record",
        _are_expected,
        'such as "a book" or {"key": "customer-7"}',
    ),
}
