"""The clock of a broker, in the hands of a test: `broker.clock`."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

from wirebroker.testing.base.arguments import checked
from wirebroker.testing.test_mode.movable_clock import MovableClock

if TYPE_CHECKING:
    from wirebroker.testing.base.instructed import Instructed


class BrokerClock:
    """What time it is for one broker. A new broker, and one that is reset, has the machine's time.

    >>> broker.clock.advance(days=7, hours=1)

    Clients go on by the machine's clock: the records that they stamp are as old for the broker as
    its clock is ahead, so that retention may delete them at once. A topic whose
    `message.timestamp.type` is LogAppendTime has the broker's own time; so have records of
    `broker.produce`.
    """

    def __init__(self, life: Instructed) -> None:
        self._life = life

    @property
    def now(self) -> datetime.datetime:
        """What time it is for the broker, in UTC.

        >>> before = broker.clock.now
        >>> broker.clock.advance(days=1)
        >>> (broker.clock.now - before).days
        1
        """
        return datetime.datetime.fromtimestamp(self.now_ms() / 1000, datetime.UTC)

    def now_ms(self) -> int:
        """Return what time it is for the broker, in milliseconds since 1970.

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
        """Let time pass, and wait until what it brings about is done.

        Retention, compaction, the time-outs of sessions, rebalances and transactions, the expiry of
        offsets and producers, the removal of deleted files: whatever is due by then happens now.

        >>> broker.create_topic("orders", config={"retention.ms": 3_600_000})
        >>> _ = broker.produce("orders", "old")
        >>> broker.clock.advance(hours=2)
        >>> broker.records("orders")
        []

        Args:
            days: How long; the arguments add up.
            hours: Likewise.
            minutes: Likewise.
            seconds: Likewise.
            milliseconds: Likewise.

        Raises:
            ValueError: Time would go back, or beyond a hundred years.
        """
        passed = datetime.timedelta(
            days=days, hours=hours, minutes=minutes, seconds=seconds, milliseconds=milliseconds
        )
        self._move(advance_ms=round(passed.total_seconds() * 1000))

    @checked
    def set(self, moment: datetime.datetime | int) -> None:
        """Let time pass until a moment, as `advance` does.

        If that has been, the wall clock is set back, as by an administrator: what was to come comes
        when it would have come.

        >>> import datetime
        >>> broker.clock.set(datetime.datetime(2100, 1, 1, tzinfo=datetime.UTC))
        >>> broker.clock.now.year
        2100

        Args:
            moment: Milliseconds since 1970, or a datetime.
        """
        if not isinstance(moment, int):
            moment = round(moment.timestamp() * 1000)
        self._move(set_ms=moment)

    @checked
    def freeze(self) -> None:
        """Stop time: nothing times out, all records of the broker's get the same time.

        >>> broker.clock.freeze()
        >>> broker.clock.now == broker.clock.now
        True
        """
        self._move(freeze=True)

    @checked
    def resume(self) -> None:
        """Let time go on where it was stopped.

        >>> broker.clock.resume()
        """
        self._move(freeze=False)

    @checked
    def reset(self) -> None:
        """Go by the machine's clock again.

        The wall clock is set back, as by `set`; what has timed out stays so. At the end of a test
        that is done by itself.

        >>> import datetime
        >>> broker.clock.advance(days=1)
        >>> broker.clock.reset()
        >>> abs(broker.clock.now - datetime.datetime.now(datetime.UTC)).seconds
        0
        """
        if self._life.clock_state is not None:
            self._move(reset=True)

    def _move(self, **arguments: Any) -> None:
        self._life.clock_state = self._life.instruct("move-clock", arguments)
