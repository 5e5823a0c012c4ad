"""The steps of one replica's machine, one after the other, with their actions.

    event  ->  step of the machine  ->  its actions, in order  ->  the next event

A step and its actions run in one turn of the event loop, so the machine and the files always agree.
Only a Persist and a Truncate take longer: a thread syncs `quorum-state` or the log. Until it is on
disk, neither the later actions of the step nor other events are handled.

Source: Kafka's KafkaRaftClientDriver.
"""

from __future__ import annotations

import asyncio
import errno
import logging
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from wirebroker.base.threads import Work, in_thread
from wirebroker.coordinator.raft.protocol.actions import Persist, Truncate
from wirebroker.coordinator.raft.protocol.events import Tick
from wirebroker.quorum.raft.superseded_writes import needed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Iterator

    from wirebroker.base.clock import Clock
    from wirebroker.coordinator.raft.protocol.actions import RaftAction
    from wirebroker.coordinator.raft.protocol.events import RaftEvent
    from wirebroker.coordinator.raft.raft_replica import RaftReplica, RaftStep
    from wirebroker.quorum.raft.raft_meters import RaftMeters

LOGGER = logging.getLogger(__name__)

# For a state without a deadline.
_LONGEST_DELAY_S: Final = 3_600.0
# With fewer actions no Persist follows another one.
_FEWEST_SUPERSEDED: Final = 3


class RaftSteps:
    """The steps of a machine, on one event loop.

    Attributes:
        performed: Set after all actions of a step, and at the end; waiting callers clear it.
    """

    __slots__ = (
        "_act",
        "_clock",
        "_events",
        "_is_ended",
        "_meters",
        "_on_failure",
        "_replica",
        "_timer",
        "_timer_ms",
        "_truncate",
        "_write",
        "_writing",
        "performed",
    )

    def __init__(
        self,
        replica: RaftReplica,
        *,
        clock: Clock,
        meters: RaftMeters,
        act: Callable[[RaftAction], None],
        write: Callable[[Persist], None],
        truncate: Callable[[int], Awaitable[None]],
        on_failure: Callable[[OSError], None],
    ) -> None:
        """Store the parts.

        Args:
            replica: The machine.
            clock: Its clock.
            meters: Its figures.
            act: Performs another action than these two. It must not call this object.
            write: Performs a Persist in a thread. Blocks.
            truncate: Performs a Truncate.
            on_failure: Called if one of them fails; it ends this object.
        """
        self._replica = replica
        self._clock = clock
        self._meters = meters
        self._act = act
        self._write = write
        self._truncate = truncate
        self._on_failure = on_failure
        # Those that wait for a write. A connection, a sync and a timer have one each at most.
        self._events: deque[RaftEvent] = deque()
        self._writing: asyncio.Task[None] | None = None
        self._is_ended = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0
        self.performed = asyncio.Event()

    @property
    def is_writing(self) -> bool:
        """Whether a Persist or a Truncate is in progress: the machine is ahead of the files."""
        return self._writing is not None

    def now_ms(self) -> int:
        """Return the machine's time."""
        return int(self._clock.monotonic() * 1000)

    def handle(self, event: RaftEvent) -> None:
        """Handle an event, after a write in progress and the events before it."""
        if self._is_ended:
            return
        if self._writing is not None or self._events:
            self._events.append(event)
        else:
            self._take(event)

    def perform(self, step: RaftStep) -> None:
        """Perform the actions of a step of the machine; no write is in progress."""
        assert self._writing is None, step
        self._meters.note_state(self._replica.core.state, self.now_ms())
        actions = step.actions
        if len(actions) >= _FEWEST_SUPERSEDED:
            actions = needed(actions)
        self._continue(iter(actions), step.wake_ms)

    def end(self) -> None:
        """Handle nothing from now on; may be repeated."""
        self._is_ended = True
        self.performed.set()
        self._events.clear()
        if self._timer is not None:
            self._timer.cancel()

    async def settle(self) -> None:
        """Wait for a write in progress, which cannot be interrupted."""
        if self._writing is not None:
            await asyncio.wait([self._writing])

    def _take(self, event: RaftEvent) -> None:
        with self._ending():
            self.perform(self._replica.step(event, self.now_ms()))

    def _continue(self, actions: Iterator[RaftAction], wake_ms: int) -> None:
        with self._ending():
            for action in actions:
                if isinstance(action, Persist | Truncate):
                    self._writing = asyncio.create_task(
                        self._finish(action, actions, wake_ms), name="write of the replica"
                    )
                    return
                self._act(action)
            self.performed.set()
            self._arm(wake_ms)

    async def _finish(
        self, action: Persist | Truncate, later_actions: Iterator[RaftAction], wake_ms: int
    ) -> None:
        with self._ending():
            if isinstance(action, Persist):
                await in_thread(Work.METADATA, self._write, action)
            else:
                await self._truncate(action.end_offset)
        self._writing = None
        if not self._is_ended:
            self._continue(later_actions, wake_ms)
            self._schedule()

    def _schedule(self) -> None:
        """Handle the next event in another turn of the event loop: there may be many."""
        if self._events and self._writing is None:
            asyncio.get_running_loop().call_soon(self._take_next)

    def _take_next(self) -> None:
        if self._events and self._writing is None:
            self._take(self._events.popleft())
            self._schedule()

    @contextmanager
    def _ending(self) -> Generator[None]:
        """End this object if the body fails: the machine and the files may no longer agree."""
        try:
            yield
        except OSError as error:
            self._on_failure(error)
        except Exception as error:  # a bug: files and machine may differ
            LOGGER.exception("the replica of the metadata log failed")
            self._on_failure(OSError(errno.EIO, f"unexpected error: {error}"))

    def _arm(self, wake_ms: int) -> None:
        if self._is_ended:
            return
        if self._timer is not None:
            if self._timer_ms <= wake_ms:
                return  # it ticks too early once, which costs less than another timer for each step
            self._timer.cancel()
        self._timer_ms = wake_ms
        delay_s = max(0, wake_ms - self.now_ms()) / 1000
        self._timer = asyncio.get_running_loop().call_later(
            min(delay_s, _LONGEST_DELAY_S), self._tick
        )

    def _tick(self) -> None:
        self._timer = None
        self.handle(Tick())
