"""What waits for the controller is sent until it is taken, whatever happens to a request."""

import asyncio

from wirebroker.clock import next_turn
from wirebroker.cluster.controller_sender import ControllerSender
from wirebroker.codecs.errors import ErrorCode, KafkaError


class Numbers(ControllerSender):
    """Sends numbers, two at a time; `answers` are what becomes of each request."""

    def __init__(self, *answers):
        super().__init__("Numbers", retry_s=0.0)
        self.waiting, self.sent, self.seen = {}, [], []
        self._answers = list(answers)

    def add(self, *numbers):
        self.waiting |= dict.fromkeys(numbers)
        self._wake()

    def _next_batch(self):
        return dict(list(self.waiting.items())[:2])

    async def _send(self, batch):
        self.sent.append([*batch])
        answer = self._answers.pop(0) if self._answers else [*batch]
        if isinstance(answer, Exception):
            raise answer
        if answer is None:
            await asyncio.Event().wait()
        for number in answer:
            del self.waiting[number]
        return len(answer) < len(batch)

    def _on_sent(self, batch, *, was_answered):
        self.seen.append(was_answered)


async def test_everything_is_sent_until_it_is_taken():
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
