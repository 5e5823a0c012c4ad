import asyncio

import pytest

from wirebroker.base.clock import next_turn
from wirebroker.net.client.fair_semaphore import FairSemaphore


async def test_slots_are_given_in_request_order():
    slots = FairSemaphore(1)
    await slots.take(1)
    came = []

    async def wait_for_one(name):
        await slots.take(10)
        came.append(name)

    tasks = [asyncio.create_task(wait_for_one(name)) for name in "abc"]
    await next_turn()
    for expected in ("a", "ab", "abc"):
        slots.give_back()
        # A newcomer does not overtake waiting callers.
        assert slots.taken == 1
        await next_turn()
        await next_turn()
        assert "".join(came) == expected
    await asyncio.gather(*tasks)
    slots.give_back()
    assert slots.taken == 0


async def test_timed_out_wait_takes_no_slot():
    slots = FairSemaphore(1)
    await slots.take(1)
    with pytest.raises(TimeoutError):
        await slots.take(0.001)
    assert slots.taken == 1
    slots.give_back()
    assert slots.taken == 0


async def test_slot_of_a_cancelled_waiter_goes_to_the_next():
    slots = FairSemaphore(1)
    await slots.take(1)
    first = asyncio.create_task(slots.take(10))
    second = asyncio.create_task(slots.take(10))
    await next_turn()
    slots.give_back()
    first.cancel()  # it was promised the slot and has not run since
    await asyncio.wait([first, second])
    assert first.cancelled()
    assert not second.cancelled()
    assert slots.taken == 1


async def test_cancelled_waiter_gets_no_slot():
    slots = FairSemaphore(1)
    await slots.take(1)
    first = asyncio.create_task(slots.take(10))
    second = asyncio.create_task(slots.take(10))
    await next_turn()
    first.cancel()
    slots.give_back()
    await asyncio.wait([first, second])
    assert first.cancelled()
    assert slots.taken == 1


async def test_closing_releases_all_waiters():
    slots = FairSemaphore(1)
    await slots.take(1)
    waiting = asyncio.create_task(slots.take(10))
    await next_turn()
    slots.close()
    await waiting
    await slots.take(10)
