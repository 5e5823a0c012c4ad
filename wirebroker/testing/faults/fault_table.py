"""The faults that tests have set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast, get_args

from wirebroker.testing.base.api_names import api_named, error_named
from wirebroker.testing.faults.refusals import can_be_refused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from wirebroker.codecs.api_keys import ApiKey
    from wirebroker.codecs.errors import ErrorCode

FaultKind: TypeAlias = Literal[
    "error", "disconnect", "delay", "throttle", "blackhole", "fail_fsync", "disk_full"
]
When: TypeAlias = Literal["before_append", "after_append"]

_MOST_MS: Final = 86_400_000
_MOST_FAULTS: Final = 1000
_OF_THE_DISK: Final = frozenset({"fail_fsync", "disk_full"})
_OF_TIME: Final = frozenset({"delay", "throttle"})


@dataclass(slots=True, kw_only=True)
class Fault:
    """A fault; None as key, topic or client id matches all requests."""

    id: int
    kind: FaultKind
    key: ApiKey | None
    topic: str | None
    client_id: str | None
    error: ErrorCode | None
    when: When
    delay_ms: int  # or throttle time
    left: int | None  # how often it still acts; None without limit
    acted: int = 0

    def act(self) -> None:
        """Count one use."""
        self.acted += 1
        if self.left is not None:
            self.left -= 1

    def concerns(self, key: ApiKey, client_id: str | None) -> bool:
        """Return whether it matches, topics aside."""
        return (
            self.left != 0
            and self.kind not in _OF_THE_DISK
            and (self.key is None or self.key == key)
            and (self.client_id is None or self.client_id == client_id)
        )


class FaultTable:
    """All faults, in their order; the first match acts."""

    __slots__ = ("_faults", "_last_id", "_when_removed")

    def __init__(self) -> None:
        self._faults: dict[int, Fault] = {}
        self._last_id = 0
        self._when_removed: dict[Callable[[], None], None] = {}

    def __bool__(self) -> bool:
        return bool(self._faults)

    def add(self, arguments: Mapping[str, Any]) -> int:
        """Add a fault and return its number.

        Raises:
            ValueError: An argument is invalid, or there are too many faults.
        """
        if len(self._faults) >= _MOST_FAULTS:
            raise ValueError(f"there are {_MOST_FAULTS} faults already")
        fault = _fault(self._last_id + 1, arguments)
        self._last_id = fault.id
        self._faults[fault.id] = fault
        return fault.id

    def limit(self, number: int, times: int) -> None:
        """Let a fault act only `times` more times.

        Raises:
            ValueError: It is unknown, or the count is negative.
        """
        if number not in self._faults:
            raise ValueError(f"there is no fault {number}")
        if times < 0:
            raise ValueError(f"a fault cannot act {times} times")
        self._faults[number].left = times

    def remove(self, number: int | None) -> None:
        """Remove a fault (None for all), and end its waits."""
        if number is None:
            self._faults.clear()
        else:
            self._faults.pop(number, None)
        waiting, self._when_removed = self._when_removed, {}
        for callback in waiting:
            callback()

    def when_removed(self, callback: Callable[[], None]) -> None:
        """Call back once, when any fault is removed."""
        self._when_removed[callback] = None

    def forget(self, callback: Callable[[], None]) -> None:
        """Cancel a callback."""
        self._when_removed.pop(callback, None)

    def rows(self) -> list[dict[str, Any]]:
        """Return the faults as JSON."""
        return [
            {
                "id": fault.id,
                "kind": fault.kind,
                "api": None if fault.key is None else fault.key.name,
                "topic": fault.topic,
                "client_id": fault.client_id,
                "error": None if fault.error is None else fault.error.name,
                "when": fault.when,
                "delay_ms": fault.delay_ms,
                "left": fault.left,
                "acted": fault.acted,
            }
            for fault in self._faults.values()
        ]

    def concerning(self, key: ApiKey, client_id: str | None) -> list[Fault]:
        """Return the matching faults, topics aside."""
        return [fault for fault in self._faults.values() if fault.concerns(key, client_id)]

    def of_disk(self, kind: FaultKind) -> bool:
        """Return whether a disk fault is set, and count a use."""
        for fault in self._faults.values():
            if fault.kind == kind and fault.left != 0:
                fault.act()
                return True
        return False


def _fault(number: int, arguments: Mapping[str, Any]) -> Fault:
    kind, when = arguments.get("kind"), arguments.get("when") or "before_append"
    if kind not in get_args(FaultKind):
        raise ValueError(f"no fault is called {kind}; there are {', '.join(get_args(FaultKind))}")
    if when not in get_args(When):
        raise ValueError(f"when must be one of {', '.join(get_args(When))}, not {when}")
    api, error = arguments.get("api"), arguments.get("error")
    key = None if api is None else api_named(api)
    if kind == "error" and (key is None or error is None):
        raise ValueError("an error fault needs an api and an error")
    if kind == "error" and key is not None and not can_be_refused(key):
        raise ValueError(f"the response to {key.name} cannot have an error")
    delay_ms = _number("delay_ms", arguments.get("delay_ms"), 0)
    if kind in _OF_TIME and not 0 < delay_ms <= _MOST_MS:
        raise ValueError(f"delay_ms must be 1 to {_MOST_MS}, not {delay_ms}")
    times = arguments.get("times")
    return Fault(
        id=number,
        kind=cast("FaultKind", kind),
        key=key,
        topic=arguments.get("topic"),
        client_id=arguments.get("client_id"),
        error=None if error is None else error_named(error),
        when=cast("When", when),
        delay_ms=delay_ms,
        left=None if times is None else _number("times", times, 0),
    )


def _number(name: str, value: Any, default: int) -> int:
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{name} must be a whole number of at least 0, not {value!r}")
    return value
