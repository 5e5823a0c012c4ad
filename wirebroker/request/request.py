"""Requests, and the forms of their responses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from wirebroker.base.shared_block import keep, owned
from wirebroker.codecs.values import Struct

if TYPE_CHECKING:
    from wirebroker.codecs.api_keys import ApiKey
    from wirebroker.request.session import Session
    from wirebroker.storage.files import FileSlice

Piece: TypeAlias = "bytes | bytearray | memoryview | FileSlice"
# Pieces of a response body, sent in order; None is no response (Produce, acks=0).
Reply: TypeAlias = "list[bytes | bytearray | memoryview | FileSlice] | None"


class CloseConnectionError(Exception):
    """Closes the connection without a response."""


class Request:
    """One request.

    Attributes:
        frame: The whole frame, writable. It and its views are valid until the handler returns; see
            `keep`.
        position: Start of the body in `frame`.
        errors: Counts the response error codes other than 0.
    """

    __slots__ = (
        "client_id",
        "correlation_id",
        "errors",
        "frame",
        "key",
        "position",
        "session",
        "version",
    )

    def __init__(  # noqa: PLR0917 - one per request: keywords would cost 0.1 us
        self,
        key: ApiKey,
        version: int,
        correlation_id: int,
        client_id: str | None,
        frame: memoryview,
        position: int,
        session: Session,
        errors: Counter[int] | None = None,
    ) -> None:
        self.key = key
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.frame = frame
        self.position = position
        self.session = session
        self.errors: Counter[int] = Counter() if errors is None else errors

    def count_error(self, code: int) -> None:
        """Count an error code that the handler encodes itself."""
        if code:
            self.errors[code] += 1

    def keep(self) -> None:
        """Keep the frame and all views into it valid while they are referenced.

        Call it before returning an awaitable that uses them. Up to 1 MiB of memory lives as long as
        any view: use `kept` for views that live long.
        """
        keep(self.frame)

    def kept(self, view: memoryview) -> memoryview:
        """Return the same bytes, copied only if necessary to stay valid."""
        return owned(view)


class LargeResponse(dict[str, Any]):
    """A response that a thread encodes; only awaitables may return one."""

    __slots__ = ()


# Elements to encode on the loop: some 3 us each.
_FEW_ELEMENTS: Final = 500


def holds_much(response: Any) -> bool:
    """Return whether a thread must encode a mapping or struct."""
    return _room_after(response, _FEW_ELEMENTS) < 0


def _room_after(part: Any, room: int) -> int:
    """Return `room` less the number of elements; stop once negative."""
    fields = cast("Mapping[str, Any]", part) if isinstance(part, Mapping) else _fields_of(part)
    for value in fields.values():
        kind = value.__class__
        if kind is dict or isinstance(value, Struct):
            room = _room_after(value, room)
            if room < 0:
                return room
        elif kind is list or kind is tuple:
            room -= len(value)
            if room < 0:
                return room
            if value and not isinstance(value[0], _PLAIN):
                for element in value:
                    room = _room_after(element, room)
                    if room < 0:
                        return room
    return room


def _fields_of(struct: Any) -> dict[str, Any]:
    return {name: getattr(struct, name) for name in struct.FIELD_NAMES}


_PLAIN: Final = (int, str, bytes)
