"""Memory that the next receive overwrites, unless a user of its contents prevents that.

A frame is a view into a block that all connections share, or into its own memory. Its users need
not know which: they call `owned` or `keep`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class SharedBlock(bytearray):
    """Shared memory; its type distinguishes views into it from views that own their bytes.

    In its own module, because subclasses of built-in types cannot be compiled.

    Attributes:
        leave: Makes the receiver preserve the filled part.
    """

    __slots__ = ("leave",)

    leave: Callable[[], None]


def is_shared(view: memoryview) -> bool:
    """Return whether the next receive may overwrite the view's bytes."""
    return type(view.obj) is SharedBlock


def owned(view: memoryview) -> memoryview:
    """Return a writable view that is never overwritten; copy the bytes if necessary."""
    return memoryview(bytearray(view)) if type(view.obj) is SharedBlock else view


def keep(view: memoryview) -> None:
    """Preserve what the last receive has filled, if the view is into it."""
    block = view.obj
    if type(block) is SharedBlock:
        block.leave()
