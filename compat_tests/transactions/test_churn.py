"""Exactly-once delivery through three chained stages while members and the broker are replaced.

pytest compat_tests/transactions/test_churn.py --eos-records 500000 --seed 7 -s

Records pass through the stages; each is a group of two members that consume, produce and commit
offsets in transactions, and that are killed like the broker. In the end read_committed readers see
each id in each topic once; they never see part of a transaction.
"""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

import pytest

from compat_tests.support import topics
from compat_tests.transactions.churn import Churn, write_ids
from compat_tests.transactions.churn_member import PARTITIONS
from compat_tests.transactions.settings import SETTINGS
from compat_tests.transactions.watcher import Watcher
from tests.support.brokers.brokers import ApacheKafka

if TYPE_CHECKING:
    from pathlib import Path

    from compat_tests.conftest import StartBroker
    from tests.support.brokers.brokers import Broker

STAGES = 3
MEMBERS = 2  # of each stage
DEFAULT_RECORDS = 10_000
# Number of each event; they are spread over the records at random.
BROKER_KILLS, MEMBER_KILLS, REPLACEMENTS = 5, 6, 4
# Maximum time without progress. Apache Kafka restarts within 13 s after a kill, and its clients'
# timeouts add to that.
PATIENCE_S = 90.0
APACHE_PATIENCE_S = 300.0


@pytest.mark.timeout(7200)
def test_three_copy_stages_deliver_each_record_once_under_churn(
    start_broker: StartBroker, topic: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    seed = request.config.getoption("--seed")
    records = request.config.getoption("--eos-records") or DEFAULT_RECORDS
    choice = random.Random(seed)
    broker = start_broker(SETTINGS)
    names = [f"{topic}-{stage}" for stage in range(STAGES + 1)]
    for name in names:
        topics.create(broker.bootstrap, name, partitions=PARTITIONS)
    expected = {b"%d" % number for number in range(records)}
    write_ids(broker.bootstrap, names[0], records)

    watchers = [Watcher(broker.bootstrap, name, PARTITIONS) for name in names[1:]]
    # Apache Kafka's internal retries for a request take longer than a whole restart of wirebroker.
    request_s = 20 if isinstance(broker, ApacheKafka) else 4
    stderr = tmp_path / "members.stderr"
    churn = Churn(broker.bootstrap, names, choice, stderr, request_s=request_s)
    started = time.monotonic()
    try:
        for stage in churn.stages:
            for _ in range(MEMBERS):
                churn.start(stage)
        run(broker, churn, watchers, plan(choice, records), records)
        for watcher in watchers:
            watcher.check_transactions(churn.aborted)
            assert watcher.describe(expected) == (0, 0), "(lost, duplicated)"
    finally:
        duration = time.monotonic() - started
        print(  # noqa: T201
            f"\nseed {seed}: {records} records, {duration:.0f} s,"
            f" {[len(watcher.seen) for watcher in watchers]} seen after each stage,"
            f" (lost, duplicated) {[watcher.describe(expected) for watcher in watchers]},"
            f" {sum(watcher.ends for watcher in watchers)} looks at a partition's end,"
            f" {dict(churn.counts)}"
        )
        churn.close()
        for watcher in watchers:
            watcher.close()


def plan(choice: random.Random, records: int) -> list[tuple[int, str]]:
    scale = max(1, records // 100_000)
    kinds = {"kill broker": BROKER_KILLS, "kill member": MEMBER_KILLS, "replace": REPLACEMENTS}
    events = [
        (choice.randrange(records * 9 // 10), kind)
        for kind, count in kinds.items()
        for _ in range(count * scale)
    ]
    return sorted(events)


def run(
    broker: Broker,
    churn: Churn,
    watchers: list[Watcher],
    events: list[tuple[int, str]],
    records: int,
) -> None:
    last = watchers[-1]
    patience_s = APACHE_PATIENCE_S if isinstance(broker, ApacheKafka) else PATIENCE_S
    progress, deadline = -1, time.monotonic() + patience_s
    while len(last.seen) < records:
        for watcher in watchers:
            watcher.read(0.02)
        churn.listen()
        churn.check()
        if events and len(last.seen) >= events[0][0]:
            happen(events.pop(0)[1], broker, churn)
        if len(last.seen) > progress:
            progress, deadline = len(last.seen), time.monotonic() + patience_s
        assert time.monotonic() < deadline, (
            f"{progress} of {records} records came through\n{churn.last_words()}"
        )
    # Read each partition's end once more: nothing else becomes visible later.
    for watcher in watchers:
        watcher.settle()
    churn.listen()


def happen(kind: str, broker: Broker, churn: Churn) -> None:
    stage = churn.choice.choice(churn.stages)
    if kind == "kill broker":
        broker.kill9()
        broker.start()
        churn.counts["broker killed"] += 1
    elif kind == "kill member":
        churn.kill(stage)
    else:
        churn.replace(stage)
