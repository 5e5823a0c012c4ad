"""One quorum of both kinds of voters under faults and load, and what must hold after it."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Final

from compat_tests.cluster.quorum.metadata_load import MetadataLoad
from compat_tests.cluster.quorum.metadata_logs import compared, dumped
from compat_tests.cluster.quorum.quorum_faults import FAULTS, QuorumFaults
from compat_tests.cluster.replicated_load import QUICK, WAIT_S, Load, create, isrs, read
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from compat_tests.cluster.quorum.mixed_quorum import MixedQuorum

BROKERS: Final = (1, 2)
TOPICS: Final = {"first": BROKERS, "second": tuple(reversed(BROKERS))}
SETTINGS: Final = {
    **QUICK,
    "offsets.topic.replication.factor": "2",
    "min.insync.replicas": "1",
    # Kafka's defaults: with shorter ones, a busy machine changes leaders by itself.
    "controller.quorum.election.timeout.ms": "1000",
    "controller.quorum.election.backoff.max.ms": "1000",
    "controller.quorum.fetch.timeout.ms": "2000",
    "broker.session.timeout.ms": "9000",
}
_CHANGES_IN_A_FAULT: Final = 3


def start_brokers(quorum: MixedQuorum) -> None:
    """Start a broker of each kind."""
    quorum.java_broker(BROKERS[0])
    quorum.wirebroker(BROKERS[1])
    create(quorum, TOPICS)


def endure(quorum: MixedQuorum, *, seconds: float, seed: int) -> str:
    """Cause faults for some time, then check everything; return a summary."""
    choice = random.Random(seed)
    faults = QuorumFaults(quorum, choice)
    records = Load(quorum, list(TOPICS))
    metadata = MetadataLoad(quorum.bootstrap, BROKERS, seed=seed)
    due = [(fault, is_leader) for fault in FAULTS for is_leader in (True, False)]
    choice.shuffle(due)
    end = time.monotonic() + seconds
    with records, metadata:
        turn = 0
        while time.monotonic() < end:
            fault, is_leader = due[turn % len(due)]
            faults.act(fault, is_leader=is_leader, work=_work(metadata, records))
            metadata.go_on(_CHANGES_IN_A_FAULT)
            turn += 1
    check(quorum, records, metadata)
    return (
        f"{turn} faults {dict(faults.counts)}, {metadata.count} changes acknowledged,"
        f" {len(metadata.unknown)} without a result, {records.count} records"
    )


def _work(metadata: MetadataLoad, records: Load) -> Callable[[], None]:
    def work() -> None:
        metadata.go_on(_CHANGES_IN_A_FAULT)
        records.go_on(20)

    return work


def check(quorum: MixedQuorum, records: Load, metadata: MetadataLoad) -> None:
    """Check that nothing acknowledged is lost, and that the voters' logs are equal."""
    assert not records.failed, records.failed[:5]
    topics = list(TOPICS)
    eventually(
        lambda: all(isr == set(BROKERS) for isr in isrs(quorum, topics).values()),
        timeout_s=WAIT_S,
    )
    for topic, acknowledged in records.acknowledged.items():
        missing = acknowledged - set(read(quorum, topic))
        assert not missing, f"{topic} has lost {len(missing)} records: {sorted(missing)[:5]}"
    eventually(lambda: not metadata.missing(), timeout_s=WAIT_S)
    high_watermark = _all_caught_up(quorum)
    folders = [node.data_dirs[0] for node in quorum.voter_nodes.values()]
    for node in (*quorum.brokers.values(), *quorum.voter_nodes.values()):
        node.stop()
    count, different = compared(folders, high_watermark)
    assert count, "the logs have nothing in common"
    assert not different, "\n".join(different[:5])
    _are_readable(folders)


def _all_caught_up(quorum: MixedQuorum) -> int:
    """Wait until all voters have all committed records; return the high watermark."""
    reached: list[int] = []

    def is_so() -> bool:
        leader = quorum.leader()
        status = None if leader is None else quorum.status(leader)
        if status is None:
            return False
        high_watermark, ends = status
        reached.append(high_watermark)
        return high_watermark > 0 and all(end >= high_watermark for end in ends.values())

    eventually(is_so, timeout_s=WAIT_S)
    return reached[-1]


def _are_readable(folders: list[Path]) -> None:
    for folder in folders:
        assert "LeaderChange" in dumped(folder) or "baseOffset" in dumped(folder), folder
