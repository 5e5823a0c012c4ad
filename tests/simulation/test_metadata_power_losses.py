"""Power losses of the nodes that store the metadata log: voters, which sync it, and observers.

pytest tests/simulation/test_metadata_power_losses.py --seed 7 --budget-scale 0   runs only seed 7
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from random import Random
from typing import TYPE_CHECKING
from unittest import mock

import pytest

from tests.simulation.machine.crash_states import CrashKind
from tests.simulation.raft.metadata_files import MetadataFiles
from tests.support.harness.budget import Budget
from wirebroker.config import StartError
from wirebroker.quorum.log.metadata_recovery import RecoveredLog
from wirebroker.quorum.log.metadata_store import MetadataStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from wirebroker.quorum.log.metadata_recovery import Batch
    from wirebroker.storage.log.segment.segment import Segment

SECONDS = 4
# The number of schedules within which a planted fault must be found.
PLENTY = 400
# The number of schedules in which each crash and each operation occurs.
FEWEST = 100
OPERATIONS = (
    "appends",
    "died in a write",
    "installed snapshots",
    "snapshots",
    "truncations",
)


@pytest.mark.parametrize("is_voter", [True, False], ids=["voter", "observer"])
def test_every_start_finds_a_log_without_gaps(
    request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str], *, is_voter: bool
) -> None:
    budget = Budget(request.config, seconds=SECONDS)
    counts: Counter[str] = Counter()
    number = 0
    for number in budget.rounds():
        files = MetadataFiles(Random(budget.seed + number), is_voter=is_voter)
        try:
            files.run()
        except (AssertionError, StartError) as error:
            raise AssertionError(f"seed {budget.seed + number}: {error}") from error
        counts += files.counts
    if number + 1 >= FEWEST:
        expected = {*OPERATIONS, *(kind.name for kind in CrashKind)}
        assert expected <= set(counts), f"never occurred: {expected - set(counts)}"
    with capsys.disabled():
        print(  # noqa: T201
            f"\n  metadata files: seed {budget.seed}, {number + 1} schedules,"
            f" {dict(counts.most_common())}"
        )


def find(text: str, *, is_voter: bool, first_seed: int = 0) -> None:
    """Run schedules, from shortly before the first failure, until one fails with this text."""
    for seed in range(first_seed, first_seed + PLENTY):
        try:
            MetadataFiles(Random(seed), is_voter=is_voter).run()
        except (AssertionError, StartError) as error:
            if text in str(error):
                return
    raise AssertionError("the planted fault is not found")


def test_detects_gap_that_is_not_looked_for() -> None:
    def add_all(log: RecoveredLog, segments: list[Segment]) -> None:
        for segment in segments:
            log._add(segment)

    with mock.patch.object(RecoveredLog, "recover", add_all):
        find("a gap", is_voter=False, first_seed=40)


def test_detects_observer_that_refuses_to_start() -> None:
    recover = MetadataStore.recover

    def as_a_voter(store: MetadataStore, *, may_refetch: bool = False) -> list[Batch]:
        del may_refetch
        return recover(store)

    with mock.patch.object(MetadataStore, "recover", as_a_voter):
        find("lacks the records", is_voter=False)


def test_detects_truncation_that_is_not_synced() -> None:
    """Truncated records of a former leader reappear."""
    truncate_to = MetadataStore.truncate_to

    def without_sync(store: MetadataStore, offset: int) -> Iterator[Callable[[], None]]:
        for sync in truncate_to(store, offset):
            if isinstance(sync, partial):  # of the directory
                yield sync

    with mock.patch.object(MetadataStore, "truncate_to", without_sync):
        find("lacks the records", is_voter=True, first_seed=460)


def test_detects_name_of_a_segment_that_is_not_synced_after_a_kill() -> None:
    recover = MetadataStore.recover

    def trusts_names(store: MetadataStore, *, may_refetch: bool = False) -> list[Batch]:
        batches = recover(store, may_refetch=may_refetch)
        store._has_new_segment = False
        return batches

    with mock.patch.object(MetadataStore, "recover", trusts_names):
        find("lost synced records", is_voter=True, first_seed=500)


def test_detects_observer_that_truncates_too_much() -> None:
    recover = MetadataStore.recover

    def without_last_batch(store: MetadataStore, *, may_refetch: bool = False) -> list[Batch]:
        batches = recover(store, may_refetch=may_refetch)
        if batches:
            (header, _) = batches.pop()
            for sync in store.truncate_to(header.base_offset):
                sync()
        return batches

    with mock.patch.object(MetadataStore, "recover", without_last_batch):
        find("a kill changed the end", is_voter=False)
