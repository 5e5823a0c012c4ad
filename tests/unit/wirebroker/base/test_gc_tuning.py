"""The cycle collector's pauses stay short."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from typing import TYPE_CHECKING

import pytest

from wirebroker.base import gc_tuning
from wirebroker.base.gc_tuning import GarbagePolicy, collect_frozen, uncollected

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True, scope="module")
def _nothing_is_frozen() -> Iterator[None]:
    """Unfreeze the collected tests, which conftest.py has frozen."""
    gc.unfreeze()
    yield
    collect_frozen()


class Node:
    def __init__(self) -> None:
        self.itself = self


def test_exit_restores_gc_thresholds_and_unfreezes_objects():
    before = gc.get_threshold(), len(gc.callbacks)
    with GarbagePolicy() as policy:
        assert (gc.get_threshold(), len(gc.callbacks)) != before
        policy.keep_all()
        assert gc.get_freeze_count() > 0
    assert (gc.get_threshold(), len(gc.callbacks)) == before
    assert gc.get_freeze_count() == 0


def test_cycles_are_collected_while_collections_are_quick(monkeypatch):
    monkeypatch.setattr(gc_tuning, "_LONGEST_MS", 1e9)
    with GarbagePolicy():
        node = weakref.ref(Node())
        gc.collect()
        assert node() is None
        assert gc.get_freeze_count() == 0


def test_objects_left_by_a_slow_collection_are_frozen(monkeypatch):
    monkeypatch.setattr(gc_tuning, "_LONGEST_MS", -1.0)
    with GarbagePolicy():
        gc.collect(1)
        assert gc.get_freeze_count() == 0, "only full collections count"
        retained: list[list[int]] = [[] for _ in range(1_000)]
        gc.collect()
        assert gc.get_freeze_count() > len(retained)
        assert len(gc.get_objects(generation=2)) < len(retained)


def test_frozen_objects_can_be_collected_again():
    with GarbagePolicy() as policy:
        instance = Node()
        node = weakref.ref(instance)
        policy.keep_all()
        del instance
        gc.collect()
        assert node() is not None
        collect_frozen()
        assert node() is None
        assert gc.get_freeze_count() > 0


def test_frozen_objects_are_not_counted_after_each_collection(monkeypatch):
    monkeypatch.setattr(gc_tuning, "_LONGEST_MS", -1.0)
    counts: list[int] = []
    count = gc.get_freeze_count

    def counted() -> int:
        counts.append(count())
        return counts[-1]

    with GarbagePolicy() as policy:
        policy.keep_all()
        monkeypatch.setattr(gc, "get_freeze_count", counted)
        kept: list[list[int]] = []
        for _ in range(10):
            kept += [[] for _ in range(1_000)]
            gc.collect()
        assert not counts
        assert count() > len(kept)


# In a separate process: this one has millions of objects, which would all be walked.
_MUCH_IS_KEPT = """
import gc
from wirebroker.base import gc_tuning

class Node:
    def __init__(self):
        self.itself = self

gc_tuning._LONGEST_MS = -1.0
gc_tuning._ROOM = 1_000
with gc_tuning.GarbagePolicy() as policy:
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


def test_frozen_garbage_is_collected_when_there_is_much():
    subprocess.run([sys.executable, "-c", _MUCH_IS_KEPT], check=True, timeout=60)


def test_no_collection_during_imports():
    with uncollected():
        assert not gc.isenabled()
        with uncollected():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
