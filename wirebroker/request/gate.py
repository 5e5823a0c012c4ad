"""What stands between a request and its handler: authorizer, quotas, audit.

The dispatcher asks it in one place, before a handler is called. What it decides by is handed in;
without that everybody may do everything.

What a session has prepared goes past `refusal`: it holds for one `epoch`, which is raised by
whatever may have the next decision come out otherwise (an ACL, a quota, a principal's groups).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from wirebroker.request.handlers import Handler
    from wirebroker.request.request import Piece, Request

# The body of an answer in a handler's place, now or later; None: call it.
Refusal: TypeAlias = "list[Piece] | Awaitable[list[Piece] | None] | None"
Decide: TypeAlias = "Callable[[Request, Handler], Refusal]"


class Gate:
    """Lets requests through, or answers them.

    Attributes:
        epoch: Raised when a decision may be another from now on.
    """

    __slots__ = ("_decide", "epoch")

    def __init__(self, decide: Decide | None = None) -> None:
        self.epoch = 0
        self._decide = decide

    def raise_epoch(self) -> None:
        """Have nothing count any more that was prepared under earlier decisions."""
        self.epoch += 1

    def refusal(self, request: Request, handler: Handler) -> Refusal:
        """Return the body of an answer in a handler's place, now or later; None: call it.

        Args:
            request: As its handler would see it, its body not read yet.
            handler: Whose needs and cost are looked at.
        """
        return None if self._decide is None else self._decide(request, handler)
