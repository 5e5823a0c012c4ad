"""`broker.clock`: a broker's time."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

from wirebroker.testing.base.arguments import checked
from wirebroker.testing.test_mode.movable_clock import MovableClock

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.testing.base.instructed import Instructed


class BrokerClock:
    """A broker's clock, at first and after a reset the machine's.

    >>> broker.clock.advance(days=7, hours=1)

    Clients keep the machine's time, so a broker that is ahead may delete their records immediately.
    Records of `broker.produce`, and of topics with `message.timestamp.type=LogAppendTime`, have the
    broker's time.
    """

    def __init__(self, life: Instructed) -> None:
        self._life = life
        # Called before and after each move: a service that runs on this clock.
        self.around_move: Callable[[], None] | None = None

    @property
    def now(self) -> datetime.datetime:
        """The time in UTC.

        >>> before = broker.clock.now
        >>> broker.clock.advance(days=1)
        >>> (broker.clock.now - before).days
        1
        """
        return datetime.datetime.fromtimestamp(self.now_ms() / 1000, datetime.UTC)

    def now_ms(self) -> int:
        """Return the time in milliseconds since 1970.

        >>> broker.clock.set(4_000_000_000_000)
        >>> broker.clock.now_ms() >= 4_000_000_000_000
        True
        """
        clock = MovableClock()
        if self._life.clock_state is not None:
            clock.restore(self._life.clock_state)
        return clock.now_ms()

    @checked
    def advance(
        self,
        *,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
        milliseconds: float = 0,
    ) -> None:
        """Advance the time by the sum of the arguments, and wait for everything due by then.

        This includes retention, compaction, timeouts, and removal of deleted files.

        >>> broker.create_topic("orders", config={"retention.ms": 3_600_000})
        >>> _ = broker.produce("orders", "old")
        >>> broker.clock.advance(hours=2)
        >>> broker.records("orders")
        []

        Raises:
            ValueError: The sum is negative or over a hundred years.
        """
        passed = datetime.timedelta(
            days=days, hours=hours, minutes=minutes, seconds=seconds, milliseconds=milliseconds
        )
        self._move(advance_ms=round(passed.total_seconds() * 1000))

    @checked
    def set(self, moment: datetime.datetime | int) -> None:
        """Set the time. A moment in the past changes only timestamps; timeouts do not go back.

        >>> import datetime
        >>> broker.clock.set(datetime.datetime(2100, 1, 1, tzinfo=datetime.UTC))
        >>> broker.clock.now.year
        2100

        Args:
            moment: Milliseconds since 1970, or a datetime.

        Raises:
            ValueError: It is before 1970, or over a hundred years ahead.
        """
        if not isinstance(moment, int):
            moment = round(moment.timestamp() * 1000)
        self._move(set_ms=moment)

    @checked
    def freeze(self) -> None:
        """Stop the time: nothing times out, and timestamps are equal.

        >>> broker.clock.freeze()
        >>> broker.clock.now == broker.clock.now
        True
        """
        self._move(freeze=True)

    @checked
    def resume(self) -> None:
        """Continue after `freeze`.

        >>> broker.clock.resume()
        """
        self._move(freeze=False)

    @checked
    def reset(self) -> None:
        """Return to the machine's time; timeouts that have already fired are not undone.

        >>> import datetime
        >>> broker.clock.advance(days=1)
        >>> broker.clock.reset()
        >>> abs(broker.clock.now - datetime.datetime.now(datetime.UTC)).seconds
        0
        """
        if self._life.clock_state is not None:
            self._move(reset=True)

    def _move(self, **arguments: Any) -> None:
        # Before as well: retention may delete what the service has not read.
        try:
            if self.around_move is not None:
                self.around_move()
        finally:
            self._life.clock_state = self._life.instruct("move-clock", arguments)
        if self.around_move is not None:
            self.around_move()
