"""Memory that the next receive overwrites, unless somebody keeps what lies in it.

A frame is a view into a block that all connections share, or into memory of its own. Who has a
frame need not know which (nor net/frames/receive_area.py, whose blocks these are):

- a view is copied out by `owned(view)`, or
- `keep(view)` leaves what the last receive has filled as it is, with every view into it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class SharedBlock(bytearray):
    """Shared memory; its type tells a view into it from a view that owns its bytes.

    A type of its own, and a module of its own: what extends a built-in type cannot be compiled.

    Attributes:
        leave: Has whoever receives into the block leave it as it is up to what is filled.
    """

    __slots__ = ("leave",)

    leave: Callable[[], None]


def is_shared(view: memoryview) -> bool:
    """Tell whether the view's bytes may be overwritten by the next receive."""
    return type(view.obj) is SharedBlock


def owned(view: memoryview) -> memoryview:
    """Return a writable view of the same bytes that stays as it is: copied only if it has to be."""
    return memoryview(bytearray(view)) if type(view.obj) is SharedBlock else view


def keep(view: memoryview) -> None:
    """Leave what the last receive has filled to whoever holds views into it.

    Args:
        view: A view into what the last receive has filled, or one that owns its bytes.
    """
    block = view.obj
    if type(block) is SharedBlock:
        block.leave()
