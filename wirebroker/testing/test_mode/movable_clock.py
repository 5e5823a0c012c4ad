"""The clock of a broker in test mode: the machine's, moved by tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.base.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Mapping

# A hundred years: times stay within what Kafka's formats and clients' dates hold.
_MOST_MS: Final = 3_200_000_000_000
# What was passed over in many steps; dates still hold it.
_MOST_RESTORED_MS: Final = 50 * _MOST_MS


class MovableClock:
    """Both of a broker's clocks; what waits for time to pass is told of moves by who makes them."""

    __slots__ = ("_frozen", "_jumped_ms", "_machine", "_passed_ms")

    def __init__(self) -> None:
        self._machine = SystemClock()
        # How far both clocks are ahead of the machine's, and wall time besides.
        self._passed_ms = 0
        self._jumped_ms = 0
        # What the machine's clocks showed when time was stopped.
        self._frozen: tuple[int, float] | None = None

    def now_ms(self) -> int:
        """Return milliseconds since 1970."""
        now_ms = self._machine.now_ms() if self._frozen is None else self._frozen[0]
        return now_ms + self._passed_ms + self._jumped_ms

    def monotonic(self) -> float:
        """Return seconds; they never go back, but may stand still."""
        now = self._machine.monotonic() if self._frozen is None else self._frozen[1]
        return now + self._passed_ms / 1000

    def advance(self, by_ms: int) -> None:
        """Let time pass.

        Raises:
            ValueError: It would go back, or beyond a hundred years.
        """
        if not 0 <= by_ms <= _MOST_MS:
            raise ValueError(f"time cannot pass by {by_ms} ms: 0 to {_MOST_MS} (a hundred years)")
        self._passed_ms += by_ms

    def set_to(self, now_ms: int) -> None:
        """Let time pass until then; or, if that has been, set wall time back.

        Raises:
            ValueError: It is not within a hundred years from 1970 on, or from now on.
        """
        if not 0 <= now_ms <= 2 * _MOST_MS:
            raise ValueError(f"{now_ms} ms is no time since 1970 that a clock can show")
        difference_ms = now_ms - self.now_ms()
        if difference_ms >= 0:
            self.advance(difference_ms)
        else:
            self._jumped_ms += difference_ms

    def freeze(self) -> None:
        """Stop time."""
        if self._frozen is None:
            self._frozen = (self._machine.now_ms(), self._machine.monotonic())

    def resume(self) -> None:
        """Let time go on where it was stopped."""
        if self._frozen is not None:
            stood_s = self._machine.monotonic() - self._frozen[1]
            # Whole milliseconds, rounded down: it must not go back.
            self._passed_ms -= int(stood_s * 1000)
            self._frozen = None

    def reset(self) -> None:
        """Go on by the machine's wall clock; time that has passed does not come back."""
        self.resume()
        self._jumped_ms = -self._passed_ms

    def state(self) -> dict[str, Any]:
        """Return where it stands, for `restore` in another process of this machine."""
        frozen_ms = None if self._frozen is None else self._frozen[0]
        return {
            "now_ms": self.now_ms(),
            "passed_ms": self._passed_ms,
            "jumped_ms": self._jumped_ms,
            "frozen_ms": frozen_ms,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Stand as another did.

        Raises:
            ValueError: No clock can have stood so.
        """
        passed_ms, jumped_ms = int(state["passed_ms"]), int(state["jumped_ms"])
        frozen_ms = state.get("frozen_ms")
        if max(abs(passed_ms), abs(jumped_ms), abs(int(frozen_ms or 0))) > _MOST_RESTORED_MS:
            raise ValueError("no clock is that far from the machine's")
        self._passed_ms, self._jumped_ms = passed_ms, jumped_ms
        if frozen_ms is not None:
            self._frozen = (int(frozen_ms), self._machine.monotonic())
