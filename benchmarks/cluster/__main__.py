"""Clusters and workers, compared with Apache Kafka in the same setup on this machine.

    python -m benchmarks.cluster [start] [failover] [produce] [catch-up] [memory] [workers] [quorum]
        [large-quorum] [--pairs 5] [--tries 4] [--ours CHECKOUT] [--output DIR]

Three nodes of each kind, one of which is also the controller; `quorum`: three controllers;
`large-quorum`: with 100,000 partitions. Without names, all are measured; --output keeps earlier
figures of other names. CPU per record is the primary figure, because the rate depends on all
processes that share the cores.
"""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial
from pathlib import Path

from benchmarks.cluster import (
    catching_up,
    failovers,
    figures,
    large_quorums,
    memory,
    produces,
    quorums,
    starts,
    workers,
)
from benchmarks.measurement.brokers import version
from benchmarks.measurement.machine import describe
from benchmarks.measurement.pairs import MOST_TRIES
from benchmarks.measurement.warm_memory import warm_memory
from tests.support.tools import tools


def main() -> int:
    options = _arguments()
    checkout, pairs = options.ours, options.pairs
    kinds = {
        "start": partial(starts.measure, checkout, pairs),
        "failover": partial(failovers.measure, checkout, pairs),
        "produce": partial(produces.measure, checkout, pairs, most_tries=options.tries),
        "catch-up": partial(catching_up.measure, checkout, pairs),
        "memory": partial(memory.measure, checkout),
        "quorum": partial(quorums.measure, checkout, pairs),
        "large-quorum": partial(large_quorums.measure, checkout, pairs),
        "workers": partial(workers.measure, checkout, pairs, most_tries=options.tries),
    }
    unknown = set(options.kinds) - set(kinds)
    if unknown:
        sys.exit(f"no such kind: {', '.join(sorted(unknown))}; there are {', '.join(kinds)}")
    facts = {
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "machine": describe(),
        "memory": f"{warm_memory() >> 30} GiB touched before",
        "ours": version(checkout),
        "theirs": f"Apache Kafka {tools.KAFKA_VERSION}",
        "pairs": str(pairs),
    }
    results: list[figures.Figure] = []
    for name in options.kinds or kinds:
        print(f"{name} …", file=sys.stderr, flush=True)
        new = kinds[name]()
        print(figures.table(new), flush=True)
        results += new
        if options.output:
            figures.write(options.output, facts, results)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="benchmarks.cluster",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("kinds", nargs="*", metavar="KIND")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument(
        "--tries", type=int, default=MOST_TRIES, help="most tries of a disturbed run (1: no retry)"
    )
    parser.add_argument("--ours", type=Path, help="wirebroker checkout (default: this one)")
    parser.add_argument("--output", type=Path, help="write cluster.md and cluster.json here")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
