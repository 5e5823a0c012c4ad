"""A clock that tests can move."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.base.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Mapping

# A hundred years: Kafka's formats and clients' dates can hold it.
_MOST_MS: Final = 3_200_000_000_000
# The sum of many steps.
_MOST_RESTORED_MS: Final = 50 * _MOST_MS


class MovableClock:
    """Wall clock and monotonic clock."""

    __slots__ = ("_frozen", "_jumped_ms", "_machine", "_passed_ms")

    def __init__(self) -> None:
        self._machine = SystemClock()
        # Lead of both clocks over the machine's; more lead of wall time.
        self._passed_ms = 0
        self._jumped_ms = 0
        # The machine's clocks at the stop.
        self._frozen: tuple[int, float] | None = None

    def now_ms(self) -> int:
        """Return milliseconds since 1970."""
        now_ms = self._machine.now_ms() if self._frozen is None else self._frozen[0]
        return now_ms + self._passed_ms + self._jumped_ms

    def monotonic(self) -> float:
        """Return seconds."""
        now = self._machine.monotonic() if self._frozen is None else self._frozen[1]
        return now + self._passed_ms / 1000

    def advance(self, by_ms: int) -> None:
        """Advance both clocks.

        Raises:
            ValueError: `by_ms` is negative or over a hundred years.
        """
        if not 0 <= by_ms <= _MOST_MS:
            raise ValueError(
                f"cannot advance the clock by {by_ms} ms: use 0 to {_MOST_MS} (a hundred years)"
            )
        self._passed_ms += by_ms

    def set_to(self, now_ms: int) -> None:
        """Advance both clocks to a time, or set the wall clock back to it.

        Raises:
            ValueError: It is before 1970, or over a hundred years ahead.
        """
        if not 0 <= now_ms <= 2 * _MOST_MS:
            raise ValueError(f"the clock cannot be set to {now_ms} ms since 1970")
        difference_ms = now_ms - self.now_ms()
        if difference_ms >= 0:
            self.advance(difference_ms)
        else:
            self._jumped_ms += difference_ms

    def freeze(self) -> None:
        """Stop both clocks."""
        if self._frozen is None:
            self._frozen = (self._machine.now_ms(), self._machine.monotonic())

    def resume(self) -> None:
        """Continue the clocks."""
        if self._frozen is not None:
            stood_s = self._machine.monotonic() - self._frozen[1]
            # Rounded down: time does not go back.
            self._passed_ms -= int(stood_s * 1000)
            self._frozen = None

    def reset(self) -> None:
        """Return to the machine's wall time; the monotonic clock stays ahead."""
        self.resume()
        self._jumped_ms = -self._passed_ms

    def state(self) -> dict[str, Any]:
        """Return the state for `restore` in another process."""
        frozen_ms = None if self._frozen is None else self._frozen[0]
        return {
            "now_ms": self.now_ms(),
            "passed_ms": self._passed_ms,
            "jumped_ms": self._jumped_ms,
            "frozen_ms": frozen_ms,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Use the state of another clock.

        Raises:
            ValueError: It is out of range.
        """
        passed_ms, jumped_ms = int(state["passed_ms"]), int(state["jumped_ms"])
        frozen_ms = state.get("frozen_ms")
        if max(abs(passed_ms), abs(jumped_ms), abs(int(frozen_ms or 0))) > _MOST_RESTORED_MS:
            raise ValueError("the clock is too far from the machine's")
        self._passed_ms, self._jumped_ms = passed_ms, jumped_ms
        if frozen_ms is not None:
            self._frozen = (int(frozen_ms), self._machine.monotonic())
