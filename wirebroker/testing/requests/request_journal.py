"""The last requests of clients, within a memory limit."""

from __future__ import annotations

import contextlib
from base64 import b64decode, b64encode
from collections import deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from wirebroker.codecs.errors import MalformedFrameError
from wirebroker.codecs.messages import decode_request
from wirebroker.testing.base.api_names import api_named
from wirebroker.testing.requests.named_topics import add_topic_names
from wirebroker.testing.requests.recorded_request import RecordedRequest

if TYPE_CHECKING:
    from collections.abc import Mapping
    from enum import Enum

    from wirebroker.codecs.api_keys import ApiKey
    from wirebroker.coordinator.controller.image.cluster_image import TopicImage
    from wirebroker.request.request import Request
    from wirebroker.testing.base.instructed import Instructed

# Of all bodies and client ids together, and of one body.
MOST_BYTES: Final = 16 << 20
MOST_BODY_BYTES: Final = 4 << 20
MOST_REQUESTS: Final = 10_000


class _Entry(NamedTuple):
    key: ApiKey
    version: int
    client_id: str | None
    peer: str
    body: bytes | None

    @property
    def held_bytes(self) -> int:
        return len(self.body or b"") + len(self.client_id or "")


class RequestJournal:
    """The requests of all clients except the kit, oldest first."""

    __slots__ = ("_entries", "_names", "_stored_bytes", "_topics")

    def __init__(self) -> None:
        self._entries: deque[_Entry] = deque()
        self._stored_bytes = 0
        self._topics: Mapping[bytes, TopicImage] = {}
        self._names: dict[bytes, str] = {}

    def learn(self, topics: Mapping[bytes, TopicImage]) -> None:
        """Use the current topics by id; names of deleted ones are kept for a while."""
        if topics is self._topics:
            return
        if len(self._names) > len(topics) + MOST_REQUESTS:
            self._names.clear()
        self._topics = topics
        self._names.update((topic_id, topic.name) for topic_id, topic in topics.items())

    def add(self, request: Request) -> None:
        """Record a request."""
        length = len(request.frame) - request.position
        body = bytes(request.frame[request.position :]) if length <= MOST_BODY_BYTES else None
        session = request.session
        entry = _Entry(request.key, request.version, request.client_id, session.peer, body)
        self._entries.append(entry)
        self._stored_bytes += entry.held_bytes
        while self._stored_bytes > MOST_BYTES or len(self._entries) > MOST_REQUESTS:
            self._stored_bytes -= self._entries.popleft().held_bytes

    def clear(self) -> None:
        """Forget all requests."""
        self._entries.clear()
        self._stored_bytes = 0

    def rows(
        self, *, key: ApiKey | None, client_id: str | None, most: int | None
    ) -> list[dict[str, Any]]:
        """Return the last matching requests as JSON, oldest first; None matches all."""
        entries = [
            entry
            for entry in self._entries
            if (key is None or entry.key == key)
            and (client_id is None or entry.client_id == client_id)
        ]
        return [
            _row(entry, self._names)
            for entry in (entries if most is None else entries[max(0, len(entries) - most) :])
        ]


def _row(entry: _Entry, names: Mapping[bytes, str]) -> dict[str, Any]:
    body = None
    if entry.body is not None:
        # A malformed request has no fields.
        with contextlib.suppress(MalformedFrameError):
            decoded = decode_request(entry.key, entry.version, entry.body)
            add_topic_names(decoded, names)
            body = to_json(decoded.as_dict())
    return {
        "api": entry.key.name,
        "version": entry.version,
        "client_id": entry.client_id,
        "peer": entry.peer,
        "body": body,
    }


def _request_of(row: dict[str, Any]) -> RecordedRequest:
    return RecordedRequest(**{**row, "body": from_json(row["body"])})


def requests_of(
    life: Instructed, api: str | Enum | None, *, client_id: str | None, most: int | None
) -> list[RecordedRequest]:
    """See OneBroker.requests."""
    key = None if api is None else api_named(api).name
    rows = life.instruct("requests", {"api": key, "client_id": client_id, "most": most})
    return [_request_of(row) for row in rows]


# Bytes as JSON: {"base64": "…"}

_MARK: Final = "base64"


def to_json(value: Any) -> Any:
    """Return a decoded message as JSON values."""
    if isinstance(value, bytes | bytearray | memoryview):
        return {_MARK: b64encode(cast("bytes", value)).decode()}
    if isinstance(value, dict):
        return {name: to_json(element) for name, element in cast("dict[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [to_json(element) for element in cast("list[Any]", value)]
    return value


def from_json(value: Any) -> Any:
    """Invert `to_json`."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        if fields.keys() == {_MARK}:
            return b64decode(fields[_MARK])
        return {name: from_json(element) for name, element in fields.items()}
    if value.__class__ is list:
        return [from_json(element) for element in value]
    return value
