"""An immutable map, compared with a dict."""

import random
from typing import TYPE_CHECKING

import pytest

from wirebroker.base.clock import in_one_go
from wirebroker.coordinator.controller.image.persistent_map import SMALL, MapEdit, PersistentMap

if TYPE_CHECKING:
    from collections.abc import Mapping


def changed(base, *, remove=(), **values):
    edit = MapEdit(base)
    for key, value in values.items():
        edit[key] = value
    for key in remove:
        edit.discard(key)
    return in_one_go(edit.finish())


def large(count):
    return changed({}, **{f"k{number}": number for number in range(count)})


def entries_that_differ(before, after):
    """Count the entries in buckets, and the keys in chunks, that are no longer shared."""
    shared = {id(part) for part in (*before._buckets, *before._order)}
    return sum(len(part) for part in (*after._buckets, *after._order) if id(part) not in shared)


def test_a_small_map_is_a_dict_and_a_large_one_is_not():
    assert type(large(SMALL)) is dict
    assert isinstance(large(SMALL + 1), PersistentMap)


@pytest.mark.parametrize("count", [1_000, 10_000, 100_000])
def test_one_change_copies_as_little_however_large_the_map_is(count):
    before = large(count)
    after = changed(before, k500=-1)
    assert after["k500"] == -1
    assert before["k500"] == 500
    assert entries_that_differ(before, after) <= 100
    added = changed(before, new=1)
    assert entries_that_differ(before, added) <= 200
    removed = changed(before, remove=["k7"])
    assert entries_that_differ(before, removed) <= 200


def test_a_key_that_is_set_again_keeps_its_place_and_a_new_one_comes_last():
    after = changed(changed(large(100), k3=-1), remove=["k0"], new=5)
    assert list(after)[:3] == ["k1", "k2", "k3"]
    assert list(after)[-1] == "new"
    assert (after["k3"], "k0" in after, after.get("k0", 9), len(after)) == (-1, False, 9, 100)
    with pytest.raises(KeyError):
        after["k0"]


def test_edit_reads_its_own_changes():
    edit = MapEdit(large(100))
    edit["k1"] = -1
    edit.discard("k2")
    edit.discard("unknown")
    edit["new"] = 3
    edit["passing"] = 4
    edit.discard("passing")
    assert (edit["k1"], edit.get("k2", 7), edit["new"], edit["k5"]) == (-1, 7, 3, 5)
    assert ("k2" in edit, "passing" in edit, "k3" in edit) == (False, False, True)
    assert len(edit) == len(list(edit)) == 100
    with pytest.raises(KeyError):
        edit["k2"]


def test_any_edit_history_equals_a_dict():
    for seed in range(30):
        chance = random.Random(seed)
        model: dict[int, float] = {}
        made: Mapping[int, float] = {}
        former: list[tuple[Mapping[int, float], dict[int, float]]] = []
        for _ in range(40):
            edit = MapEdit(made)
            former.append((made, dict(model)))
            for _ in range(chance.choice([1, 1, 3, 60])):
                key = chance.randrange(chance.choice([80, 400]))
                if chance.random() < 0.4:
                    edit.discard(key)
                    model.pop(key, None)
                else:
                    edit[key] = chance.random()
                    model[key] = edit[key]
            made = in_one_go(edit.finish())
            if isinstance(made, PersistentMap):
                made.check()
            assert made == model, seed
        for image, then in former:
            assert image == then, seed
