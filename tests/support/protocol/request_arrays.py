"""All arrays of all served requests, found in the protocol's schemas."""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.support.protocol.message_values import versions_of
from tests.support.protocol.sample_requests import SampleRequests, arrays_in, at
from tests.support.protocol.served_keys import served_keys
from wirebroker.codecs.api_keys import ApiKey

# These delete what other requests need, so they come last.
_LAST = (ApiKey.DELETE_RECORDS, ApiKey.OFFSET_DELETE, ApiKey.DELETE_GROUPS, ApiKey.DELETE_TOPICS)


class Place(NamedTuple):
    key: ApiKey
    version: int
    path: tuple[str | int, ...]

    def __str__(self) -> str:
        names = ".".join(part for part in self.path if isinstance(part, str))
        return f"{self.key.name} v{self.version} {names}"


def places() -> list[Place]:
    """Return all arrays, each in its last version."""
    places_by_path: dict[tuple[ApiKey, tuple[str | int, ...]], Place] = {}
    for key in sorted(served_keys(), key=lambda key: key in _LAST):
        for version in versions_of(key):
            for path in arrays_in(SampleRequests(bytes(16)).body(key, version)):
                places_by_path[key, path] = Place(key, version, path)
    return list(places_by_path.values())


def at_or_none(body: dict[str, Any], path: tuple[str | int, ...]) -> Any:
    try:
        return at(body, path)
    except TypeError:  # an outer array is null
        return None


def renamed(element: Any, number: int, *, length: int = 0) -> Any:
    """Return an array element with another name, id or index."""
    if isinstance(element, bool) or element is None:
        return element
    if isinstance(element, str):
        return f"{element}-{number}".rjust(length, "n")
    if isinstance(element, int):
        return number % 128
    if isinstance(element, bytes):
        return number.to_bytes(16) if len(element) == 16 else element
    changed = dict(element)
    for name, value in element.items():
        if isinstance(value, str | bytes) or name in {"partition_index", "partition"}:
            changed[name] = renamed(value, number, length=length)
            break
    return changed
