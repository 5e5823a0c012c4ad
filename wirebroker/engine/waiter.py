"""A pending response, passed to state machine operations as a token."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.codecs.errors import ErrorCode, KafkaError

ResponseT = TypeVar("ResponseT")

# The fields of a message.
Response = Mapping[str, Any]


class Waiter:
    """A pending response, without a future if it is immediate."""

    __slots__ = ("_finish", "_future", "_on_error", "_response")

    def __init__(
        self,
        on_error: Callable[[ErrorCode], Response],
        finish: Callable[[dict[str, Any]], Response] | None = None,
    ) -> None:
        self._on_error = on_error
        # Converts the machine's response.
        self._finish = finish
        self._response: Response | None = None
        self._future: asyncio.Future[Response] | None = None

    def resolve(self, response: dict[str, Any]) -> None:
        """Set the response, unless it is set."""
        made = response if self._finish is None else self._finish(response)
        if self._future is None and self._response is None:
            self._response = made
        else:
            self._give(made)

    def fail(self, error: KafkaError) -> None:
        """Set an error response."""
        self._give(self._on_error(error.code))

    def result(self) -> Response | asyncio.Future[Response]:
        """Return the response, or a future of it."""
        if self._response is not None:
            return self._response
        if self._future is None:
            self._future = asyncio.get_running_loop().create_future()
        return self._future

    def _give(self, response: Response) -> None:
        if self._future is not None:
            # The connection may have closed.
            if not self._future.done():
                self._future.set_result(response)
        elif self._response is None:
            self._response = response


class AwaitedResponse(Generic[ResponseT]):
    """A pending response for a caller that awaits it and gets errors raised."""

    __slots__ = ("future",)

    def __init__(self) -> None:
        self.future: asyncio.Future[ResponseT] = asyncio.get_running_loop().create_future()

    def resolve(self, response: ResponseT) -> None:
        """Set the response."""
        if not self.future.done():
            self.future.set_result(response)

    def fail(self, error: KafkaError) -> None:
        """Set the error to raise."""
        if not self.future.done():
            self.future.set_exception(error)
