"""Work that goes on in a thread beside a test."""

from __future__ import annotations

import abc
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self


class InBackground(abc.ABC):
    """`with` such an object: `_run` goes on in a thread until `_is_over`; `_finish` follows it."""

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
        """Let go of what the work needed; here, not in the thread."""


class BackgroundLoad(abc.ABC):
    """What does one piece of work after the other, in a thread, until it is told to finish.

    Args:
        name: What failures call it.
        patience_s: How long the piece that is under way may take once it is told to finish.

    Attributes:
        count: Pieces that were begun.
        error: What ended the thread before its time.
    """

    def __init__(self, name: str, *, patience_s: float) -> None:
        self.name = name
        self.count = 0
        self.error: BaseException | None = None
        self._patience_s = patience_s
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> Self:
        """Begin; return itself."""
        self._thread.start()
        return self

    def finish(self) -> None:
        """Begin nothing more, and wait for the end of what is under way."""
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
