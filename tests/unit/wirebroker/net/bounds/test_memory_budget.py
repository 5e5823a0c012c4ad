"""The budget for requests in flight: waits and their order."""

import random

from wirebroker.net.bounds.memory_budget import MemoryBudget


class Frames:
    def __init__(self) -> None:
        self.wake_ups = 0

    def memory_is_free(self) -> None:
        self.wake_ups += 1


def new_budget(limit_bytes: int) -> MemoryBudget:
    return MemoryBudget(limit_bytes, schedule=lambda callback: callback())


def test_everybody_may_receive_while_the_budget_lasts():
    budget = new_budget(100)
    one, two = Frames(), Frames()
    budget.began_large(one)
    budget.began_large(two)
    budget.add(99)
    assert budget.may_receive(one)
    assert budget.may_receive(two)


def test_only_the_oldest_goes_on_when_the_budget_is_used_up():
    budget = new_budget(100)
    old, young = Frames(), Frames()
    budget.began_large(old)
    budget.began_large(young)
    budget.began_large(old)
    budget.add(100)
    assert budget.may_receive(old)
    assert not budget.may_receive(young)


def test_the_next_oldest_is_woken_when_the_oldest_has_ended():
    budget = new_budget(100)
    frames = [Frames() for _ in range(3)]
    for each in frames:
        budget.began_large(each)
        budget.add(100)
    budget.wait(frames[1])
    budget.wait(frames[2])
    budget.add(-100)
    budget.ended_large(frames[0])
    assert [each.wake_ups for each in frames] == [0, 1, 0]
    budget.check()


def test_all_are_woken_when_there_is_room_again():
    budget = new_budget(100)
    frames = [Frames() for _ in range(3)]
    for each in frames:
        budget.began_large(each)
    budget.add(120)
    budget.wait(frames[1])
    budget.wait(frames[2])
    budget.add(-30)
    assert [each.wake_ups for each in frames] == [0, 1, 1]
    budget.check()


def test_any_order_of_events_ends_with_all_frames_received(request):
    source = random.Random(request.config.getoption("--seed"))
    for _ in range(50):
        budget = new_budget(1000)
        missing = {Frames(): source.randint(1, 900) for _ in range(10)}
        held = dict.fromkeys(missing, 0)
        seen = dict.fromkeys(missing, 0)
        waiting: set[Frames] = set()
        for each in missing:
            budget.began_large(each)
        while missing:
            runnable = [each for each in missing if each not in waiting]
            assert runnable, "all wait for each other"
            each = source.choice(runnable)
            if not budget.may_receive(each):
                seen[each] = each.wake_ups
                budget.wait(each)
                waiting.add(each)
                continue
            count = min(missing[each], source.randint(1, 300))
            missing[each] -= count
            held[each] += count
            budget.add(count)
            if not missing[each]:
                budget.add(-held[each])
                budget.ended_large(each)
                del missing[each]
            waiting = {other for other in waiting if other.wake_ups == seen[other]}
            budget.check()
        assert budget.used_bytes == 0
