"""Planted faults, which a random machine or a simulation must find.

A table has the faults by name: the object to patch, its attribute, and the faulty replacement.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from unittest import mock

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from hypothesis.stateful import RuleBasedStateMachine

# Examples within which a machine must find a fault, and steps of each.
PLENTY: Final = 1_000
STEPS: Final = 40


def cases(faults: Mapping[str, tuple[Any, ...]], each_day: Collection[str]) -> list[Any]:
    """Return the names of faults as parameters of a test; most are for the nightly run.

    Raises:
        AssertionError: What a fault replaces no longer exists.
    """
    assert set(each_day) <= set(faults)
    for name, (patched, attribute, *_) in faults.items():
        assert hasattr(patched, attribute), f"the fault {name!r} replaces nothing: {attribute}"
    return [
        name if name in each_day else pytest.param(name, marks=pytest.mark.nightly)
        for name in faults
    ]


def assert_found(
    machine: type[RuleBasedStateMachine],
    fault: tuple[Any, str, Any],
    errors: tuple[type[Exception], ...],
) -> None:
    """Check that a random machine finds a fault; it fails with one of `errors`."""
    with mock.patch.object(*fault), pytest.raises(errors):
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=PLENTY,
                stateful_step_count=STEPS,
                deadline=None,
                database=None,
                derandomize=True,
                phases=[Phase.generate],
                report_multiple_bugs=False,
                suppress_health_check=list(HealthCheck),
            ),
        )
