"""The broker's outgoing connections under random network faults (worlds/client_world.py)."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.simulation.worlds.client_world import ClientWorld

RUNS = 40


def test_every_request_ends_in_time_with_its_response_or_an_error(pytestconfig):
    outcomes: Counter[str] = Counter()
    runs = max(4, int(RUNS * pytestconfig.option.budget_scale))
    for seed in range(pytestconfig.option.seed, pytestconfig.option.seed + runs):
        world = ClientWorld(seed)
        try:
            world.run()
        except BaseException as error:
            error.add_note(f"seed {seed}; last: {world.trace[-5:]}")
            raise
        outcomes += world.outcomes
    assert outcomes["answered"] > sum(outcomes.values()) / 2
    # Otherwise the test shows nothing about these outcomes.
    assert set(outcomes) == {
        "answered",
        "cancelled",
        "BrokenProtocolError",
        "LongResponseError",
        "CannotConnectError",
        "ConnectionLostError",
        "RequestTimedOutError",
    }


@pytest.mark.parametrize("seed", [3, 4])
def test_same_seed_gives_the_same_run(seed):
    first, second = ClientWorld(seed), ClientWorld(seed)
    first.run()
    second.run()
    assert first.trace == second.trace
