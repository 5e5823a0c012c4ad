"""Methods of one object that threads call one at a time."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def exclusive(
    method: Callable[Concatenate[Any, _Parameters], _Result],
) -> Callable[Concatenate[Any, _Parameters], _Result]:
    """Let a method run in one thread at a time; all exclusive methods share the object's `lock`."""

    @functools.wraps(method)
    def run(self: Any, /, *args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        with self.lock:
            return method(self, *args, **kwargs)

    return run
