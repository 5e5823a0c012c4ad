"""Two brokers measured in turn (A B A B …): medians of ratios within pairs, with bounds.

The machine's speed drifts, but less between consecutive runs. Bounds of 95 % from order statistics
assume no distribution.
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

# A run is repeated if other processes used more of the machine.
MOST_FOREIGN_SHARE = 0.10
MOST_TRIES = 4
WARM_UPS = 2
# More for the peer, because Java still compiles after two runs.
PEER_WARM_UPS = 4


@dataclass(frozen=True)
class Sample:
    records: float
    seconds: float  # without the generator's start
    extra: dict[str, float] = field(default_factory=dict[str, float])  # latencies in us


@dataclass(frozen=True)
class Run:
    rate: float  # records a second
    cpu_us: float  # the broker's CPU per record
    foreign_share: float
    extra: dict[str, float]


@dataclass(frozen=True)
class Bounded:
    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.low:.2f} to {self.high:.2f})"


def bounded(values: Sequence[float]) -> Bounded:
    """Return the median and its 95 % bounds; below six values, these are the extremes."""
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
    """All runs of a case; runs with the same index are from one pair.

    Attributes:
        dropped: The number of repeated runs.
        plain: Of a third broker, ours without a compiler, if measured.
        conditions: For the table: cores, and the runs' length.
    """

    ours: list[Run] = field(default_factory=list[Run])
    theirs: list[Run] = field(default_factory=list[Run])
    dropped: int = 0
    plain: list[Run] = field(default_factory=list[Run])
    conditions: str = ""

    def rate_ratio(self, runs: Sequence[Run] | None = None) -> Bounded:
        """Return our rate (or that of `runs`) divided by theirs."""
        runs = self.ours if runs is None else runs
        return bounded([a.rate / b.rate for a, b in zip(runs, self.theirs, strict=True)])

    def cpu_ratio(self, runs: Sequence[Run] | None = None) -> Bounded:
        """Return their CPU per record divided by ours (or that of `runs`)."""
        pairs = zip(self.ours if runs is None else runs, self.theirs, strict=True)
        return bounded([b.cpu_us / a.cpu_us if a.cpu_us else math.inf for a, b in pairs])


class Driven(Protocol):
    """A broker, or several measured as one."""

    @property
    def port(self) -> int: ...

    @property
    def process_id(self) -> int:
        """The process that listens at the port."""
        ...

    @property
    def process_ids(self) -> Sequence[int]: ...


AnyDriven_contra = TypeVar("AnyDriven_contra", bound=Driven, contravariant=True)


class Measured(Protocol[AnyDriven_contra]):
    """A case, run on a new topic each time."""

    def prepare(self, broker: AnyDriven_contra) -> str:
        """Return the topic's name."""
        ...

    def run(self, broker: AnyDriven_contra, topic: str) -> Sample: ...

    def clean(self, broker: AnyDriven_contra, topic: str) -> None: ...


def measure(
    case: Measured[Any],
    wirebroker: Driven,
    peer: Driven,
    count: int,
    plain: Driven | None = None,
    *,
    most_tries: int = MOST_TRIES,
) -> Pairs:
    """Measure `count` pairs, or triples with a third broker, after warm-up runs.

    A disturbed run is repeated, up to `most_tries` in all.
    """
    pairs = Pairs()
    turns = [(wirebroker, pairs.ours), (peer, pairs.theirs)]
    if plain is not None:
        turns.append((plain, pairs.plain))
    for broker, _ in turns * WARM_UPS + turns[1:2] * PEER_WARM_UPS:
        _run_once(case, broker)
    for _ in range(count):
        for broker, runs in turns:
            runs.append(_run(case, broker, pairs, most_tries))
    return pairs


def _run(case: Measured[Any], broker: Driven, pairs: Pairs, most_tries: int) -> Run:
    tries: list[Run] = []
    for _ in range(most_tries):
        tries.append(_run_once(case, broker))
        if tries[-1].foreign_share <= MOST_FOREIGN_SHARE:
            break
        pairs.dropped += 1
        share = tries[-1].foreign_share
        print(f"  others used {share:.0%} of the machine: repeating", file=sys.stderr)
    return min(tries, key=lambda run: run.foreign_share)


def _run_once(case: Measured[Any], broker: Driven) -> Run:
    if not listens(broker.process_id, broker.port):
        raise RuntimeError(f"process {broker.process_id} does not serve port {broker.port}")
    topic = case.prepare(broker)
    os.sync()  # write back the previous run's data
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
