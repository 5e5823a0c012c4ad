"""Flipped bits and missing, truncated or zeroed files: detected, repaired, or refused at the start.

As in Apache Kafka, an unclean start truncates a log at the first bad batch above the recovery
point. Below it nothing is checked: consumers get the bytes as they are, and requests that must
decode the batch fail with CORRUPT_MESSAGE. Indexes have no checksum: after a clean stop, a flipped
bit that keeps their order goes unnoticed. A start either succeeds or raises a StartError that names
the problem.
"""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from tests.crash.broker_process import BrokerProcess, broker_config, small_segments
from tests.crash.clients import GroupClient, TopicClient, topic_after
from tests.crash.history import stored_batches
from tests.crash.log_checks import check_indexes, check_lookups
from tests.crash.store import new_disk
from tests.simulation.machine.disk import Directory, Disk, Inode
from tests.support.storage.time_search import offset_for_timestamp
from wirebroker.base.clock import pause
from wirebroker.codecs.errors import KafkaError
from wirebroker.codecs.records.batch import iterate_batches
from wirebroker.config.rows.row import StartError

_SEGMENT_BYTES = 600
_FLIPS = 12
CONFIG = broker_config(durability="fsync")


def lived_in(*, is_clean: bool) -> Disk:
    random = Random(5)
    disk = new_disk(is_recorded=True)
    broker = BrokerProcess(disk, CONFIG, random)
    assert broker.start()
    client = TopicClient("a", random, lambda: 0)
    topic = TopicClient("c", random, lambda: 0)
    group = GroupClient("g", "c", random, lambda: 0)

    async def live() -> None:
        await client._create(broker, keeps_all=True)
        await topic._create(broker)
        for _ in range(9):
            await client._produce(broker, topic_after(client.book.steps))
        await asyncio.gather(*[group._commit(broker) for _ in range(3)])
        await pause(2.0)  # checkpoints

    with small_segments(_SEGMENT_BYTES):
        broker.run(live())
        if is_clean:
            broker.stop()
            broker.close()
        else:
            broker.kill()
    disk.events = None
    return disk


DISKS = {True: lived_in(is_clean=True), False: lived_in(is_clean=False)}


def files_of(disk: Disk, ending: str) -> list[tuple[str, Inode]]:
    files = []
    nodes = [("", disk.directory("/data"))]
    while nodes:
        directory_name, directory = nodes.pop()
        for name, node in directory.names.items():
            if isinstance(node, Directory):
                nodes.append((name, node))
            elif name.endswith(ending) and node.data:
                files.append((f"{directory_name}/{name}", node))
    return files


def start(disk: Disk) -> BrokerProcess | None:
    broker = BrokerProcess(disk, CONFIG, Random(1))
    with small_segments(_SEGMENT_BYTES):
        try:
            assert broker.start()
        except StartError as error:
            broker.close()
            REFUSALS.append(str(error))
            return None
        broker.run(pause(3.0))
    return broker


def records_in(broker: BrokerProcess) -> dict[tuple[str, int], bytes]:
    partitions, _ = broker.broker.replicas.find("a", b"", by_id=False)
    return {
        ("a", index): b"".join(
            segment.log.read_at(0, segment.log.size())
            for segment in partition.log.segments
            if segment.log.size()
        )
        for index, partition in partitions.items()
    }


def check(broker: BrokerProcess, expected: dict[tuple[str, int], bytes]) -> None:
    """Check that all records are found by offset and by time."""
    assert records_in(broker) == expected
    partitions, _ = broker.broker.replicas.find("a", b"", by_id=False)
    for partition in partitions.values():
        log = partition.log
        log.check()
        stored = stored_batches(log)
        for segment in log.segments:
            check_indexes(segment, Random(1))
        check_lookups(log, stored, Random(1))


@pytest.fixture(scope="module")
def expected():
    broker = start(DISKS[True].clone())
    assert broker is not None
    records = records_in(broker)
    broker.kill()
    assert sum(map(len, records.values())) > 3 * _SEGMENT_BYTES
    return records


REFUSALS: list[str] = []

SMALL_FILES = [
    "leader-epoch-checkpoint",
    ".snapshot",
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    "log-start-offset-checkpoint",
    "partition.metadata",
    "meta.properties",
    "quorum-state",
    "bootstrap.checkpoint",
    ".kafka_cleanshutdown",
]


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize("ending", SMALL_FILES)
def test_small_file_with_a_flipped_bit_is_repaired_or_refused(
    ending: str, is_clean: bool, expected
) -> None:
    random = Random(ending)
    for _ in range(_FLIPS):
        disk = DISKS[is_clean].clone()
        files = files_of(disk, ending)
        if not files:
            return
        name, inode = random.choice(files)
        position = random.randrange(len(inode.data))
        inode.data[position] ^= 1 << random.randrange(8)
        broker = start(disk)
        if broker is None:
            continue
        records = records_in(broker)
        for key, content in records.items():
            # A log whose topic id does not match is set aside.
            assert content in {expected[key], b""}, name
            assert content == expected[key] or ending == "partition.metadata"
        assert not broker.errors, broker.errors
        broker.kill()


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize("how", ["missing", "short", "zeros", "empty"])
@pytest.mark.parametrize("ending", [".index", ".timeindex", ".snapshot", "-checkpoint"])
def test_damaged_indexes_snapshots_and_checkpoints_are_rebuilt(
    ending: str, how: str, is_clean: bool, expected
) -> None:
    disk = DISKS[is_clean].clone()
    directory = disk.directory("/data/a-0")
    for name, node in list(directory.names.items()):
        if not name.endswith(ending) or not isinstance(node, Inode):
            continue
        if how == "missing":
            del directory.names[name]
        elif how == "short":
            del node.data[len(node.data) // 2 + 1 :]
        elif how == "zeros":
            node.data = bytearray(len(node.data))
        else:
            node.data = bytearray()
    broker = start(disk)
    assert broker is not None
    check(broker, expected)
    assert not broker.errors, broker.errors
    broker.kill()


@pytest.mark.parametrize("is_clean", [True, False])
def test_flushed_log_with_a_flipped_bit_is_not_truncated_or_repaired(
    is_clean: bool, expected
) -> None:
    random = Random(3)
    for _ in range(_FLIPS):
        disk = DISKS[is_clean].clone()
        files = [item for item in files_of(disk, ".log") if item[0].startswith("a-")]
        name, inode = random.choice(sorted(files)[:-1])
        # Inside the range that the checksum covers.
        position, header = random.choice(list(iterate_batches(bytes(inode.data))))
        inode.data[position + random.randrange(21, header.size)] ^= 1 << random.randrange(8)
        broker = start(disk)
        if broker is None:
            continue
        sizes = {key: len(content) for key, content in records_in(broker).items()}
        was = {key: len(content) for key, content in expected.items()}
        if is_clean:
            assert sizes == was, name
        assert not broker.errors, broker.errors
        partitions, _ = broker.broker.replicas.find("a", b"", by_id=False)
        for partition in partitions.values():
            try:
                offset_for_timestamp(partition.log, 1 << 40, up_to_offset=1 << 40)
            except KafkaError:
                continue
        broker.kill()


@pytest.mark.parametrize("is_clean", [True, False])
def test_metadata_log_with_a_flipped_bit_is_truncated_or_refused(is_clean: bool, expected) -> None:
    random = Random(4)
    outcomes = set()
    for _ in range(_FLIPS):
        disk = DISKS[is_clean].clone()
        files = [
            item
            for ending in (".log", ".checkpoint")
            for item in files_of(disk, ending)
            if item[0].startswith("__cluster_metadata")
        ]
        _, inode = random.choice(files)
        inode.data[random.randrange(len(inode.data))] ^= 1 << random.randrange(8)
        broker = start(disk)
        outcomes.add(broker is not None)
        if broker is not None:
            assert not broker.errors, broker.errors
            broker.kill()
    assert outcomes


def test_start_error_names_the_damaged_file() -> None:
    disk = DISKS[True].clone()
    ((_, inode),) = files_of(disk, "meta.properties")
    inode.data[:] = b"nonsense"
    assert start(disk) is None
    assert "meta.properties is damaged" in REFUSALS[-1]
