"""What stands between a request and its handler: authorizer, quotas, audit.

The dispatcher asks it in one place, before a handler is called. This one lets everybody do
everything.

What a session has prepared goes past `refusal`: it holds for one `epoch`, which is raised by
whatever may have the next decision come out otherwise (an ACL, a quota, a principal's groups).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from wirebroker.handlers import Handler
    from wirebroker.request import Piece, Request


class Gate:
    """Lets every request through.

    Attributes:
        epoch: Raised when a decision may be another from now on.
    """

    __slots__ = ("epoch",)

    def __init__(self) -> None:
        self.epoch = 0

    def refusal(
        self, request: Request, handler: Handler
    ) -> list[Piece] | Awaitable[list[Piece] | None] | None:
        """Return the body of an answer in a handler's place, now or later; None: call it.

        Args:
            request: As its handler would see it, its body not read yet.
            handler: Whose needs and cost are looked at.
        """
        del request, handler
        return None
