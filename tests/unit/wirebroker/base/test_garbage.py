"""The cycle collector's pauses stay short."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref

from wirebroker.base import garbage
from wirebroker.base.garbage import GarbagePolicy, collect_kept, uncollected


class Node:
    def __init__(self) -> None:
        self.itself = self


def test_the_process_gets_its_thresholds_and_objects_back():
    before = gc.get_threshold(), len(gc.callbacks)
    with GarbagePolicy() as policy:
        assert (gc.get_threshold(), len(gc.callbacks)) != before
        policy.keep_all()
        assert gc.get_freeze_count() > 0
    assert (gc.get_threshold(), len(gc.callbacks)) == before
    assert gc.get_freeze_count() == 0


def test_cycles_are_collected_while_collections_are_quick(monkeypatch):
    monkeypatch.setattr(garbage, "_LONGEST_MS", 1e9)
    with GarbagePolicy():
        node = weakref.ref(Node())
        gc.collect()
        assert node() is None
        assert gc.get_freeze_count() == 0


def test_what_a_slow_collection_leaves_is_kept_out_of_the_next_one(monkeypatch):
    monkeypatch.setattr(garbage, "_LONGEST_MS", -1.0)
    with GarbagePolicy():
        gc.collect(1)
        assert gc.get_freeze_count() == 0, "only full collections count"
        kept: list[list[int]] = [[] for _ in range(1_000)]
        gc.collect()
        assert gc.get_freeze_count() > len(kept)
        assert len(gc.get_objects(generation=2)) < len(kept)


def test_what_was_kept_can_be_looked_through_once_more():
    with GarbagePolicy() as policy:
        held = Node()
        node = weakref.ref(held)
        policy.keep_all()
        del held
        gc.collect()
        assert node() is not None
        collect_kept()
        assert node() is None
        assert gc.get_freeze_count() > 0


# In a separate process: this one has millions of objects, which would all be walked.
_MUCH_IS_KEPT = """
import gc
from wirebroker.base import garbage

class Node:
    def __init__(self):
        self.itself = self

garbage._LONGEST_MS = -1.0
garbage._ROOM = 1_000
with garbage.GarbagePolicy() as policy:
    gc.disable()
    policy.keep_all()
    before = most_kept = gc.get_freeze_count()
    for _ in range(60):
        held = [Node() for _ in range(before // 10)]  # each has a dict, too
        gc.collect()
        del held
        most_kept = max(most_kept, gc.get_freeze_count())
    # All of it together is several times what there was.
    assert before < most_kept < 3 * before, (before, most_kept)
"""


def test_garbage_among_what_is_kept_goes_when_there_is_much_of_it():
    subprocess.run([sys.executable, "-c", _MUCH_IS_KEPT], check=True, timeout=60)


def test_nothing_is_collected_while_modules_are_imported():
    with uncollected():
        assert not gc.isenabled()
        with uncollected():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
