"""Messages for the controller are retried until it accepts them."""

import asyncio
import itertools
import logging
from random import Random

from tests.simulation.machine.loop import SimulatedLoop
from wirebroker.base.clock import next_turn, pause
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.net.client.settings import Backoff
from wirebroker.quorum.channel.controller_sender import ControllerSender

AT_ONCE = Backoff(first_s=0.0, most_s=0.0)
KAFKAS = Backoff(first_s=0.1, most_s=10.0, jitter=0.0)


class Numbers(ControllerSender):
    def __init__(self, *answers, backoff=AT_ONCE):
        super().__init__("Numbers", backoff=backoff, seed=1)
        self.waiting, self.sent, self.seen, self.at_s = {}, [], [], []
        self._answers = list(answers)

    def add(self, *numbers):
        self.waiting |= dict.fromkeys(numbers)
        self._wake()

    def _next_batch(self):
        return dict(list(self.waiting.items())[:2])

    async def _send(self, batch):
        self.sent.append([*batch])
        self.at_s.append(asyncio.get_running_loop().time())
        answer = self._answers.pop(0) if self._answers else [*batch]
        if isinstance(answer, Exception):
            raise answer
        if answer is None:
            await asyncio.Event().wait()
        for number in answer:
            del self.waiting[number]
        return len(batch) - len(answer)

    def _on_sent(self, batch, *, was_answered):
        self.seen.append(was_answered)


async def test_requests_are_sent_until_accepted():
    refused = KafkaError(ErrorCode.NOT_CONTROLLER)
    numbers = Numbers(refused, RuntimeError("a mistake"), [2])
    numbers.add(1, 2, 3)
    while numbers.waiting:
        await next_turn()
    assert numbers.sent == [[1, 2], [1, 2], [1, 2], [1, 3]]
    await numbers.stop()
    assert numbers.seen[:3] == [False, False, True]


async def test_nothing_is_sent_after_a_stop():
    numbers = Numbers(None)
    numbers.add(1)
    while not numbers.sent:
        await next_turn()
    await numbers.stop()
    numbers.add(2)
    await next_turn()
    assert numbers.sent == [[1]]
    assert list(numbers.waiting) == [1, 2]


def in_virtual_time(work):
    with asyncio.Runner(loop_factory=lambda: SimulatedLoop(Random(1))) as runner:
        runner.run(work)


def pauses(numbers):
    return [round(after - before, 3) for before, after in itertools.pairwise(numbers.at_s)]


def test_unavailable_controller_is_retried_with_backoff(caplog):
    caplog.set_level(logging.INFO)
    away = [KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"no answer, {n}") for n in range(9)]
    numbers = Numbers(*away, backoff=KAFKAS)

    async def work():
        numbers.add(1)
        while numbers.waiting:
            await pause(0.1)

    in_virtual_time(work())
    assert pauses(numbers) == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0]
    assert [record.getMessage() for record in caplog.records] == [
        "Numbers failed, retrying: no answer, 0",
        "Numbers: the controller accepted the request",
    ]


async def _add_late(numbers):
    """Submit an item and another four seconds later; return when that is accepted."""
    numbers.add(1)
    await pause(4.0)
    numbers.add(2)
    while 2 in numbers.waiting:
        await pause(0.01)
    await numbers.stop()


def test_new_requests_wait_for_an_unavailable_controller():
    numbers = Numbers(*[KafkaError(ErrorCode.NOT_CONTROLLER)] * 6, backoff=KAFKAS)
    in_virtual_time(_add_late(numbers))
    assert numbers.sent[-1] == [1, 2]
    assert pauses(numbers) == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2]


def test_new_requests_do_not_wait_for_refused_ones():
    numbers = Numbers(*[[]] * 6, [2], backoff=KAFKAS)
    in_virtual_time(_add_late(numbers))
    assert numbers.sent == [[1]] * 6 + [[1, 2]]
    assert pauses(numbers) == [0.1, 0.2, 0.4, 0.8, 1.6, 0.9]
