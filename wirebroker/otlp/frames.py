"""How pages go through a pipe: eight bytes of length, the page. Back comes a line for each."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from typing import BinaryIO

# The line that says so; any other says why not.
SENT: Final = "sent"

_LENGTH: Final = Struct(">Q")


def encode_page(page: bytes) -> bytes:
    """Return a page as it goes through."""
    return _LENGTH.pack(len(page)) + page


def read_page(pipe: BinaryIO) -> bytes | None:
    """Return the next page; None when the other side has ended."""
    head = pipe.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    page = pipe.read(length)
    return page if len(page) == length else None
