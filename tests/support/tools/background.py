"""Work in a background thread during a test."""

from __future__ import annotations

import abc
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self


class InBackground(abc.ABC):
    """A context manager: `_run` works in a thread during the block, then `_finish` is called."""

    def __init__(self) -> None:
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_over.set()
        self._thread.join()
        self._finish()

    @abc.abstractmethod
    def _run(self) -> None:
        """Work until `_is_over` is set."""

    @abc.abstractmethod
    def _finish(self) -> None:
        """Release resources, in the test's thread."""


class BackgroundLoad(abc.ABC):
    """A thread that repeats a piece of work until `finish` is called.

    Args:
        name: Its name in failures.
        patience_s: Timeout for the last piece after `finish`, in seconds.

    Attributes:
        count: Started pieces.
        error: The exception that ended the thread early.
    """

    def __init__(self, name: str, *, patience_s: float) -> None:
        self.name = name
        self.count = 0
        self.error: BaseException | None = None
        self._patience_s = patience_s
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> Self:
        self._thread.start()
        return self

    def finish(self) -> None:
        """Stop after the current piece; raise the thread's error if it failed."""
        self._is_over.set()
        self._thread.join(self._patience_s)
        assert not self._thread.is_alive(), f"{self.name} hangs in its transaction {self.count}"
        if self.error:
            raise self.error

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001 - raised again by `finish`
            self.error = error

    @abc.abstractmethod
    def _work(self) -> None:
        """Work until `_is_over` is set."""
