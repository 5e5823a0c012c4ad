"""Two brokers measured in turn (A B A B …): medians of ratios within pairs, with bounds.

The machine's speed drifts; two runs one right after the other share it. So the ratio is taken
within each pair, and the table shows the median of the ratios with its 95 % bounds from order
statistics, which assume nothing of the distribution.
"""

from __future__ import annotations

import math
import os
import statistics
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from benchmarks.measurement.machine import Witness, listens

if TYPE_CHECKING:
    from collections.abc import Sequence

# A run during which others had more of the machine than this is dropped and taken again.
MOST_FOREIGN_SHARE = 0.10
MOST_TRIES = 4
WARM_UPS = 2
# More of these for the peer: after two runs of two seconds Java still compiles what it runs.
PEER_WARM_UPS = 4


@dataclass(frozen=True)
class Sample:
    """What one run of a generator found."""

    records: float
    seconds: float  # as the generator counts, without its start
    extra: dict[str, float] = field(default_factory=dict[str, float])  # latencies in us


@dataclass(frozen=True)
class Run:
    """One run on one broker."""

    rate: float  # records a second
    cpu_us: float  # the broker's CPU per record
    foreign_share: float
    extra: dict[str, float]


@dataclass(frozen=True)
class Bounded:
    """A median with its 95 % bounds."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.low:.2f} to {self.high:.2f})"


def bounded(values: Sequence[float]) -> Bounded:
    """Return the median and its 95 % bounds; below six values these are least and greatest."""
    ordered = sorted(values)
    count = len(ordered)
    tail, rank = 0.0, 0
    for below in range(count // 2):
        tail += math.comb(count, below) / 2**count
        if 2 * tail > 0.05:
            break
        rank = below
    return Bounded(statistics.median(ordered), ordered[rank], ordered[count - 1 - rank])


@dataclass
class Pairs:
    """All runs of a case: ours and theirs, index by index from the same pair.

    Attributes:
        ours: Of the broker that is measured.
        theirs: Of the one it is measured against.
        dropped: How many were taken again.
        plain: Of a third broker, ours as it is without a compiler; empty if there is none.
        conditions: What is said of the runs in the table: cores, and their length.
    """

    ours: list[Run] = field(default_factory=list[Run])
    theirs: list[Run] = field(default_factory=list[Run])
    dropped: int = 0
    plain: list[Run] = field(default_factory=list[Run])
    conditions: str = ""

    def rate_ratio(self, runs: Sequence[Run] | None = None) -> Bounded:
        """Return how many times theirs our rate is, or that of `runs`."""
        runs = self.ours if runs is None else runs
        return bounded([a.rate / b.rate for a, b in zip(runs, self.theirs, strict=True)])

    def cpu_ratio(self, runs: Sequence[Run] | None = None) -> Bounded:
        """Return how many times ours (that of `runs`) the CPU per record of theirs is."""
        pairs = zip(self.ours if runs is None else runs, self.theirs, strict=True)
        return bounded([b.cpu_us / a.cpu_us if a.cpu_us else math.inf for a, b in pairs])


class Driven(Protocol):
    """A broker, or several that are measured as one."""

    @property
    def port(self) -> int:
        """Where it is driven."""
        ...

    @property
    def process_id(self) -> int:
        """Of the process that listens there."""
        ...

    @property
    def process_ids(self) -> Sequence[int]:
        """Of all whose CPU counts."""
        ...


AnyDriven_contra = TypeVar("AnyDriven_contra", bound=Driven, contravariant=True)


class Measured(Protocol[AnyDriven_contra]):
    """A case as it is run: on a fresh topic each time."""

    def prepare(self, broker: AnyDriven_contra) -> str:
        """Make what a run needs; return the topic's name."""
        ...

    def run(self, broker: AnyDriven_contra, topic: str) -> Sample:
        """Drive the broker."""
        ...

    def clean(self, broker: AnyDriven_contra, topic: str) -> None:
        """Remove what prepare has made."""
        ...


def measure(
    case: Measured[Any],
    ours: Driven,
    theirs: Driven,
    count: int,
    plain: Driven | None = None,
    *,
    most_tries: int = MOST_TRIES,
) -> Pairs:
    """Take `count` pairs of runs, after some to warm up: Java compiles what it runs often.

    With a third broker these are threes, in turns. A run that others disturbed is taken again, so
    often at most that there are `most_tries`.
    """
    pairs = Pairs()
    turns = [(ours, pairs.ours), (theirs, pairs.theirs)]
    if plain is not None:
        turns.append((plain, pairs.plain))
    for broker, _ in turns * WARM_UPS + turns[1:2] * PEER_WARM_UPS:
        _run_once(case, broker)
    for _ in range(count):
        for broker, runs in turns:
            runs.append(_run(case, broker, pairs, most_tries))
    return pairs


def _run(case: Measured[Any], broker: Driven, pairs: Pairs, most_tries: int) -> Run:
    """Run until the machine leaves a run alone; the least disturbed one counts after all tries."""
    tries: list[Run] = []
    for _ in range(most_tries):
        tries.append(_run_once(case, broker))
        if tries[-1].foreign_share <= MOST_FOREIGN_SHARE:
            break
        pairs.dropped += 1
        share = tries[-1].foreign_share
        print(f"  others had {share:.0%} of the machine: again", file=sys.stderr)
    return min(tries, key=lambda run: run.foreign_share)


def _run_once(case: Measured[Any], broker: Driven) -> Run:
    if not listens(broker.process_id, broker.port):
        raise RuntimeError(f"process {broker.process_id} is not the one on {broker.port}")
    topic = case.prepare(broker)
    os.sync()  # what the last run left must not be written back during this one
    try:
        with Witness(*broker.process_ids) as witness:
            sample = case.run(broker, topic)
    finally:
        case.clean(broker, topic)
    return Run(
        sample.records / sample.seconds,
        witness.broker_cpu_s / sample.records * 1e6,
        witness.foreign_share,
        sample.extra,
    )
