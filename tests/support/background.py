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
