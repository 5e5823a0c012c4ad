"""The metadata log after a clean or unclean restart."""

from unittest import mock

import pytest

from tests.support.coordinators.kit import new_topic
from tests.unit.wirebroker.quorum.log.metadata_kit import NO_OP, Node, settle, snapshotting, write
from wirebroker.codecs.metadata_records import RecordType, metadata_record
from wirebroker.config.rows.row import StartError
from wirebroker.quorum.log import snapshot_writer
from wirebroker.quorum.log.metadata_batches import BATCH_RECORDS
from wirebroker.storage.files import Files


@pytest.fixture
def node(tmp_path):
    return Node(tmp_path)


async def test_large_change_truncated_by_a_crash_is_discarded(node):
    path = f"{node.log_directory}/00000000000000000000.log"

    # Creation needs a serving broker; its registration is older and was stored.
    log = await node.start()
    await node.create(log, new_topic("a", 3 * BATCH_RECORDS))
    await log.close()
    content = Files().read_file(path)
    # The end of the transaction is lost, with a part of its last batch.
    file = Files().data(path)
    file.truncate(len(content) - 100)
    file.close()
    log = await node.open()
    cut = set(log.follower.image.topics), log.follower.image.open_transaction
    await node.create(log, new_topic("b"))
    await log.close()
    log = await node.open()
    await log.close()
    assert (cut, set(log.follower.image.topics)) == ((set(), None), {"b"})


@pytest.mark.parametrize("cut", [1, 30, 61, 70])
async def test_torn_log_end_is_cut(node, cut, caplog):
    path = f"{node.log_directory}/00000000000000000000.log"

    log = await node.start()
    await node.create(log, new_topic("a"))
    await log.submit(write(NO_OP))
    await log.close()
    file = Files().data(path)
    file.truncate(file.size() - cut)
    file.close()
    log = await node.open()
    await log.close()
    assert set(log.follower.image.topics) == {"a"}
    assert "of an incomplete write" in caplog.text


async def test_snapshots_bound_the_restart_time(tmp_path):
    node = snapshotting(tmp_path)

    log = await node.start()
    await node.create(log, new_topic("kept", 2, configs={"retention.ms": "7"}))
    for _ in range(200):
        await log.submit(write(NO_OP))
        await settle(log)
    before = log.follower.image
    await log.close()
    sizes = [len(Files().read_file(f"{node.log_directory}/{name}")) for name in node.files(".log")]
    log = await node.open()
    await log.close()
    after = log.follower.image
    assert after.topics == before.topics
    assert after.configs == before.configs
    assert after.brokers == before.brokers
    assert sum(sizes) < 4000
    [snapshot] = node.files(".checkpoint")
    assert node.files(".log")[0][:20] == snapshot[:20]
    lines = Files().read_file(f"{node.log_directory}/leader-epoch-checkpoint").split(b"\n")
    assert lines[2] == b"1 %d" % int(snapshot[:20])


async def test_start_reads_only_the_snapshot_if_the_log_is_empty(tmp_path):
    node = snapshotting(tmp_path)

    log = await node.start()
    await node.create(log, new_topic("kept"))
    while not node.files(".checkpoint"):
        await log.submit(write(NO_OP))
        await settle(log)
    await log.close()
    before = log.follower.image
    for suffix in (".log", ".index", ".timeindex", "leader-epoch-checkpoint"):
        for name in node.files(suffix):
            Files().unlink(f"{node.log_directory}/{name}")
    log = await node.open()
    await log.close()
    after = log.follower.image
    assert after.topics == before.topics
    assert (before.epoch, after.epoch) == (1, 2)


async def test_a_snapshot_that_is_older_than_the_log_is_continued_by_the_log(tmp_path):
    node = snapshotting(tmp_path)

    log = await node.start()
    while not node.files(".checkpoint"):
        await log.submit(write(NO_OP))
        await settle(log)
    await node.create(log, new_topic("later"))
    await log.close()
    log = await node.open()
    await log.close()
    assert set(log.follower.image.topics) == {"later"}


async def test_damaged_snapshot_prevents_the_start(tmp_path):
    node = snapshotting(tmp_path)

    log = await node.start()
    while not node.files(".checkpoint"):
        await log.submit(write(NO_OP))
        await settle(log)
    await log.close()
    path = f"{node.log_directory}/{node.files('.checkpoint')[0]}"
    content = bytearray(Files().read_file(path))
    content[100] ^= 1
    Files().write_file(path, content)
    with pytest.raises(StartError, match="CRC-32C does not match"):
        await node.open()


async def test_missing_records_prevent_the_start(tmp_path):
    node = snapshotting(tmp_path)

    log = await node.start()
    while not node.files(".checkpoint"):
        await log.submit(write(NO_OP))
        await settle(log)
    await log.close()
    for name in node.files(".checkpoint"):
        Files().unlink(f"{node.log_directory}/{name}")
    with pytest.raises(StartError, match="lacks the records from offset 0"):
        await node.open()


@pytest.mark.parametrize(
    "record",
    [
        metadata_record(RecordType.FEATURE_LEVEL, name="metadata.version", feature_level=34),
        metadata_record(RecordType.FEATURE_LEVEL, name="flux.version", feature_level=1),
    ],
)
async def test_a_log_of_a_newer_broker_is_refused(node, record):
    log = await node.start()
    await log.submit(write(record))
    await log.close()
    with pytest.raises(StartError, match="newer broker"):
        await node.open()


async def test_unknown_record_type_is_refused_and_nothing_is_cut(node, monkeypatch):
    path = f"{node.log_directory}/00000000000000000000.log"

    log = await node.start()
    monkeypatch.setattr(
        "wirebroker.quorum.log.metadata_batches.encode_metadata_record",
        lambda record: b"\x01\x63\x00\x00",
    )
    await log.submit(write(NO_OP))
    await log.close()
    size = len(Files().read_file(path))
    with pytest.raises(StartError, match="type 99"):
        await node.open()
    assert len(Files().read_file(path)) == size


async def test_a_quorum_with_other_voters_is_refused(node):
    await (await node.start()).close()
    path = f"{node.log_directory}/quorum-state"
    text = Files().read_file(path).replace(b'"voterId":1}', b'"voterId":1},{"voterId":2}')
    Files().write_file(path, text)
    with pytest.raises(StartError, match=r"other voters: \[2\]"):
        await node.open()


async def test_a_quorum_state_that_cannot_be_read_is_refused(node):
    await (await node.start()).close()
    Files().write_file(f"{node.log_directory}/quorum-state", b"{")
    with pytest.raises(StartError, match="quorum-state cannot be read"):
        await node.open()


async def test_leftovers_of_a_crash_are_removed(node):
    await (await node.start()).close()
    for name in ("x.checkpoint.part", "x.tmp", "00000000000000000000.log.deleted"):
        Files().write_file(f"{node.log_directory}/{name}", b"x")
    await (await node.open()).close()
    assert node.files(".part") + node.files(".tmp") + node.files(".deleted") == []


async def test_start_appends_only_its_own_records(node):
    sizes = []
    for _ in range(3):
        await (await node.start()).close()
        sizes.append(len(Files().read_file(f"{node.log_directory}/00000000000000000000.log")))
    assert sizes[2] - sizes[1] == sizes[1] - sizes[0] < 1000


async def test_repeated_starts_do_not_grow_the_log_without_bound(node):
    changes_bytes = 500 * 80  # of a start after a kill, and a little more

    with mock.patch.object(snapshot_writer, "_LEAST_INTERVAL_BYTES", 100_000):
        log = await node.start()
        await node.create(log, new_topic("a", 500))
        await log.close()
        sizes = []
        for _ in range(8):
            log = await node.start()
            await settle(log)
            await log.close()
            contents = [
                Files().read_file(f"{node.log_directory}/{name}") for name in node.files(".log")
            ]
            sizes.append(sum(map(len, contents)))
        snapshots, image = node.files(".checkpoint"), log.follower.image
    assert len(snapshots) == 1
    assert max(sizes) < 100_000 + changes_bytes
    assert {partition.leader_epoch for partition in image.topics["a"].partitions.values()} == {16}
