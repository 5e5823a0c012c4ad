"""Options and rules for every test: the broker under test, long tests, budgets and the seed.

    pytest --broker apache      the compatibility tests against Apache Kafka instead of wirebroker
    pytest --long               also tests marked `long` (else deselected, not skipped)
    pytest --nightly            also tests marked `nightly`: further variants, or long builds
    pytest --seed 7             another run of the randomized tests; the header prints the seed
    pytest --seed random        with a new random seed; without --seed it is DEFAULT_SEED
    pytest --budget-scale 10    give randomized tests ten times their time (.ci/run: 0.4)
    pytest --share 0.5          take half of that time for what the compiled run tries too
    pytest --measure-holds      print how long turns of the event loop are (test_loop_holds.py)
    pytest --crash-points 60000 cut runs at this number of points (tests/crash)
    pytest --crash-at POINT     repeat one of them
    pytest --kills 100          kill brokers under load a hundred times in all
    pytest --records 1000       number of records of each run of the delivery service with kills
    pytest --lockstep-steps 5000 number of random steps of each kind to both brokers
    pytest --eos-records 500000 number of records through chained transactional stages

Fixtures that only one folder uses belong in that folder's conftest.py.
"""

from __future__ import annotations

import gc
import os
import random
from typing import Any

import hypothesis
import pytest

from compiling.messages.build import COMMAND, are_current
from tests.support.harness.async_tests import pytest_pyfunc_call
from tests.support.harness.own_data import refuse_own_data
from tests.support.harness.run_times import RunTimes
from tests.support.harness.sources import parsed_sources

# Hooks and fixtures that are imported from other modules.
__all__ = ["parsed_sources", "pytest_pyfunc_call"]

# The seed without --seed: constant, so that a rare fault, which a new seed would find some day,
# does not fail an unrelated change.
DEFAULT_SEED = 1_000


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add our options."""
    group = parser.getgroup("wirebroker")
    group.addoption(
        "--broker",
        choices=("wirebroker", "apache"),
        default="wirebroker",
        help="broker that the compatibility tests run against",
    )
    group.addoption("--long", action="store_true", help="also run tests marked long")
    group.addoption("--nightly", action="store_true", help="also run tests marked long or nightly")
    group.addoption(
        "--budget-scale",
        type=float,
        default=float(os.environ.get("WIREBROKER_TESTS_BUDGET", "1")),
        metavar="FACTOR",
        help="multiply the time and the examples of randomized tests (default 1.0)",
    )
    group.addoption(
        "--share",
        type=float,
        default=float(os.environ.get("WIREBROKER_TESTS_SHARE", "1")),
        metavar="FRACTION",
        help="of the time of randomized tests that plain and compiled runs divide (default 1.0)",
    )
    group.addoption(
        "--measure-holds",
        action="store_true",
        help="print how long turns of the event loop are instead of counting their work",
    )
    group.addoption(
        "--kills", type=int, default=8, metavar="N", help="kills of a broker under load"
    )
    group.addoption(
        "--records",
        type=int,
        default=1_000,
        metavar="N",
        help="records of each nightly run of the delivery service with kills (default 1000)",
    )
    group.addoption(
        "--lockstep-steps",
        type=int,
        default=300,
        metavar="N",
        help="random steps of each kind to Apache Kafka and wirebroker (default 300)",
    )
    group.addoption(
        "--eos-records", type=int, metavar="N", help="records through the stages of transactions"
    )
    group.addoption(
        "--seed",
        type=_seed,
        default=DEFAULT_SEED,
        metavar="N",
        help=f"seed of randomized tests, or 'random' for a new one (default {DEFAULT_SEED})",
    )
    group.addoption(
        "--crash-points", type=int, metavar="N", help="how often tests/crash crashes something"
    )
    group.addoption("--crash-at", metavar="POINT", help="a single crash, as a failure names it")


def _seed(text: str) -> int | None:
    """Read --seed; None is one that pytest_configure draws."""
    return None if text == "random" else int(text)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Give the seed to a worker process of pytest-xdist, which reads the command line again."""
    node.workerinput["seed"] = node.config.option.seed


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Choose the seed, once for all processes; and set hypothesis up."""
    if not are_current():
        raise pytest.UsageError(f"codecs/generated is missing or stale: {COMMAND}")
    refuse_own_data()
    config.option.long |= config.option.nightly
    seed = getattr(config, "workerinput", {}).get("seed", config.option.seed)
    config.option.seed = random.SystemRandom().randrange(1 << 32) if seed is None else seed
    if config.option.hypothesis_seed is None:
        # Read by hypothesis's own plugin, which is configured after this.
        config.option.hypothesis_seed = str(config.option.seed)
    hypothesis.settings.register_profile(
        "wirebroker",
        max_examples=max(1, int(100 * config.option.budget_scale * config.option.share)),
        deadline=None,  # a busy machine is no failure
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
        print_blob=True,
    )
    if config.option.hypothesis_profile is None:
        config.option.hypothesis_profile = "wirebroker"
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(RunTimes(config), "wirebroker-run-times")


def pytest_report_header(config: pytest.Config) -> str:
    """Print what a run can be repeated with."""
    options = config.option
    long = ", long tests too" if options.long else ""
    long = ", nightly tests too" if options.nightly else long
    return (
        f"wirebroker: broker {options.broker}, --seed {options.seed}, "
        f"--budget-scale {options.budget_scale:g}{long}"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what the options don't ask for: long tests, nightly ones."""
    left_out = {name for name in ("long", "nightly") if not config.getoption(name)}
    selected: list[pytest.Item] = []
    deselected: list[pytest.Item] = []
    for item in items:
        is_left_out = any(mark.name in left_out for mark in item.iter_markers())
        (deselected if is_left_out else selected).append(item)
    if deselected:
        config.hook.pytest_deselected(items=deselected)
        items[:] = selected


def pytest_collection_finish() -> None:
    """Exclude the collected tests, which stay to the end, from garbage collections."""
    gc.collect()
    gc.freeze()
