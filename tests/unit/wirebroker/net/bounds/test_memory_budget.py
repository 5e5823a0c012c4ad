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


def test_all_may_receive_below_the_memory_budget():
    budget = new_budget(100)
    first, second = Frames(), Frames()
    budget.began_large(first)
    budget.began_large(second)
    budget.add(99)
    assert budget.may_receive(first)
    assert budget.may_receive(second)


def test_only_the_oldest_continues_when_the_budget_is_exhausted():
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
    for frame in frames:
        budget.began_large(frame)
        budget.add(100)
    budget.wait(frames[1])
    budget.wait(frames[2])
    budget.add(-100)
    budget.ended_large(frames[0])
    assert [frame.wake_ups for frame in frames] == [0, 1, 0]
    budget.check()


def test_all_are_woken_when_memory_is_available_again():
    budget = new_budget(100)
    frames = [Frames() for _ in range(3)]
    for frame in frames:
        budget.began_large(frame)
    budget.add(120)
    budget.wait(frames[1])
    budget.wait(frames[2])
    budget.add(-30)
    assert [frame.wake_ups for frame in frames] == [0, 1, 1]
    budget.check()


def test_any_order_of_events_ends_with_all_frames_received(request):
    source = random.Random(request.config.getoption("--seed"))
    for _ in range(50):
        budget = new_budget(1000)
        missing = {Frames(): source.randint(1, 900) for _ in range(10)}
        received = dict.fromkeys(missing, 0)
        wake_ups_seen = dict.fromkeys(missing, 0)
        waiting: set[Frames] = set()
        for frame in missing:
            budget.began_large(frame)
        while missing:
            runnable = [frame for frame in missing if frame not in waiting]
            assert runnable, "all wait for each other"
            frame = source.choice(runnable)
            if not budget.may_receive(frame):
                wake_ups_seen[frame] = frame.wake_ups
                budget.wait(frame)
                waiting.add(frame)
                continue
            count = min(missing[frame], source.randint(1, 300))
            missing[frame] -= count
            received[frame] += count
            budget.add(count)
            if not missing[frame]:
                budget.add(-received[frame])
                budget.ended_large(frame)
                del missing[frame]
            waiting = {other for other in waiting if other.wake_ups == wake_ups_seen[other]}
            budget.check()
        assert budget.used_bytes == 0
