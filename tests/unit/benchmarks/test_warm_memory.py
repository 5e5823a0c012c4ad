"""Memory is touched before measurements, up to the free amount."""

from benchmarks.measurement import warm_memory as module
from benchmarks.measurement.warm_memory import available_bytes, warm_memory

MIB = 1 << 20


def test_requested_amount_of_memory_is_touched():
    assert warm_memory(3 * MIB + 5) == 3 * MIB


def test_memory_needed_by_others_is_not_touched(monkeypatch):
    monkeypatch.setattr(module, "available_bytes", lambda: (3 << 30) + 2 * MIB)
    assert warm_memory() == 2 * MIB
    monkeypatch.setattr(module, "available_bytes", lambda: 0)
    assert warm_memory() == 0


def test_the_kernel_is_asked_how_much_is_there():
    assert available_bytes() > 64 * MIB
