"""Optional check before each handler, where test mode injects faults.

Prepared requests bypass `refusal`. They are valid for one `epoch`, which changes with the ACLs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from wirebroker.request.handlers import Handler
    from wirebroker.request.request import Piece, Request

Refusal: TypeAlias = "list[Piece] | Awaitable[list[Piece] | None] | None"
Decide: TypeAlias = "Callable[[Request, Handler], Refusal]"


class RequestAdmission:
    """Admits requests or responds in place of their handlers."""

    __slots__ = ("_decide", "epoch")

    def __init__(self, decide: Decide | None = None) -> None:
        self.epoch = 0
        self._decide = decide

    def raise_epoch(self) -> None:
        """Invalidate prepared requests, because decisions may have changed."""
        self.epoch += 1

    def refusal(self, request: Request, handler: Handler) -> Refusal:
        """Return a response body or an awaitable of it; None if the handler must be called."""
        return None if self._decide is None else self._decide(request, handler)
