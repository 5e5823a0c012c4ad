import asyncio

import pytest

from wirebroker.base.clock import next_turn
from wirebroker.net.client.places import Places


async def test_places_are_given_in_the_order_in_which_they_are_asked_for():
    places = Places(1)
    await places.take(1)
    came = []

    async def wait_for_one(name):
        await places.take(10)
        came.append(name)

    tasks = [asyncio.create_task(wait_for_one(name)) for name in "abc"]
    await next_turn()
    for expected in ("a", "ab", "abc"):
        places.give_back()
        # A newcomer does not overtake waiting callers.
        assert places.taken == 1
        await next_turn()
        await next_turn()
        assert "".join(came) == expected
    await asyncio.gather(*tasks)
    places.give_back()
    assert places.taken == 0


async def test_who_waits_in_vain_takes_nothing():
    places = Places(1)
    await places.take(1)
    with pytest.raises(TimeoutError):
        await places.take(0.001)
    assert places.taken == 1
    places.give_back()
    assert places.taken == 0


async def test_a_place_promised_to_somebody_who_is_cancelled_goes_to_the_next():
    places = Places(1)
    await places.take(1)
    first = asyncio.create_task(places.take(10))
    second = asyncio.create_task(places.take(10))
    await next_turn()
    places.give_back()
    first.cancel()  # it was promised the slot and has not run since
    await asyncio.wait([first, second])
    assert first.cancelled()
    assert not second.cancelled()
    assert places.taken == 1


async def test_who_is_cancelled_while_waiting_is_left_out():
    places = Places(1)
    await places.take(1)
    first = asyncio.create_task(places.take(10))
    second = asyncio.create_task(places.take(10))
    await next_turn()
    first.cancel()
    places.give_back()
    await asyncio.wait([first, second])
    assert first.cancelled()
    assert places.taken == 1


async def test_nobody_waits_once_they_are_closed():
    places = Places(1)
    await places.take(1)
    waiting = asyncio.create_task(places.take(10))
    await next_turn()
    places.close()
    await waiting
    await places.take(10)
