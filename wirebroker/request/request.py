"""One request on its way to a handler, and the forms of what comes back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from wirebroker.base.shared_block import keep, owned

if TYPE_CHECKING:
    from wirebroker.codecs.api_keys import ApiKey
    from wirebroker.request.session import Session
    from wirebroker.storage.files import FileSlice

Piece: TypeAlias = "bytes | bytearray | memoryview | FileSlice"
# The body of an answer in pieces, sent one after the other; None is no answer (Produce, acks=0).
Reply: TypeAlias = "list[bytes | bytearray | memoryview | FileSlice] | None"


class CloseConnectionError(Exception):
    """A handler's wish that the connection be closed without an answer; logged in one line."""


class Request:
    """One request, as its handler sees it.

    Attributes:
        key: The API key.
        version: One of the versions that are served.
        correlation_id: Returned in the answer's header (done by dispatch).
        client_id: The client's name for itself.
        frame: The whole frame, header included, writable. It and all views into it are valid until
            the handler returns; see `keep`.
        position: Where the body starts in `frame`.
        session: Of the connection that it came on.
        errors: Counts the error codes other than 0 of the API's responses, by code.
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
        """Count an error code of the response, if its handler encodes the response."""
        if code:
            self.errors[code] += 1

    def keep(self) -> None:
        """Keep the frame, and every view into it, valid for as long as somebody holds them.

        Must be called before the handler returns an awaitable that uses them. Nothing is copied,
        but up to 1 MiB of memory lives as long as any of the views: a piece of a frame that is
        kept for long is better copied by `kept`.
        """
        keep(self.frame)

    def kept(self, view: memoryview) -> memoryview:
        """Return a view of the same bytes that stays valid: copied only if it has to be."""
        return owned(view)


class LargeResponse(dict[str, Any]):
    """A response that takes long to encode: a thread does it. Only awaitables may give one."""

    __slots__ = ()


# Elements of a response that are encoded on the loop: some 3 us each.
_FEW_ELEMENTS: Final = 500


def holds_much(response: Any) -> bool:
    """Tell whether a response, a mapping or a struct, takes long to encode: a thread does it."""
    return _room_after(response, _FEW_ELEMENTS) < 0


def _room_after(part: Any, room: int) -> int:
    """Return how many elements fit besides those of a part; it stops where none does."""
    fields = cast("Mapping[str, Any]", part) if isinstance(part, Mapping) else _fields_of(part)
    for value in fields.values():
        if value.__class__ is list:
            room -= len(value)
            if room < 0:
                return room
            if value and not isinstance(value[0], _PLAIN):
                for each in value:
                    room = _room_after(each, room)
                    if room < 0:
                        return room
    return room


def _fields_of(struct: Any) -> dict[str, Any]:
    return {name: getattr(struct, name) for name in struct.FIELD_NAMES}


_PLAIN: Final = (int, str, bytes)
