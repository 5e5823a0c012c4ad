"""The metadata log: acknowledged changes are on disk, in order, and complete."""

import asyncio
import errno
import threading

import pytest

from tests.support.coordinators.feature_levels import new_cluster_features
from tests.support.coordinators.kit import new_topic
from tests.unit.wirebroker.quorum.log.metadata_kit import NO_OP, Node, write
from wirebroker.base.clock import Slices, next_turn
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.batch import iterate_batches, iterate_records
from wirebroker.coordinator.operation import ControllerResult
from wirebroker.quorum.channel.controller_channel import LocalChannel
from wirebroker.quorum.log.metadata_snapshot import read_snapshot
from wirebroker.quorum.log.metadata_store import MetadataStore
from wirebroker.storage.files import DataFile, Files


@pytest.fixture
def node(tmp_path):
    return Node(tmp_path)


async def test_new_log_has_kafkas_files_and_an_active_broker(node):
    log = await node.start()
    image = log.follower.image
    await log.close()
    assert image.features == new_cluster_features()
    assert image.brokers[1].is_active
    assert image.epoch == 1
    names = set(Files().list_directory(node.log_directory))
    assert names == {
        "00000000000000000000.index",
        "00000000000000000000.log",
        "00000000000000000000.timeindex",
        "leader-epoch-checkpoint",
        "partition.metadata",
        "quorum-state",
    }
    assert "bootstrap.checkpoint" in Files().list_directory(node.directory)
    text = Files().read_file(f"{node.log_directory}/partition.metadata")
    assert text == b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"


async def test_the_bootstrap_checkpoint_is_a_whole_snapshot_of_the_feature_levels(node):
    await _open_and_close(node)
    contents = read_snapshot(Files().read_file(f"{node.directory}/bootstrap.checkpoint"))
    [(header, batch)] = contents.batches
    assert [record.value for record in iterate_records(batch, header, max_bytes=1000)]


async def _open_and_close(node):
    log = await node.start()
    await node.create(log, new_topic("kept", 2))
    await log.close()
    return log.follower.image


async def test_the_first_batches_are_the_leader_and_the_bootstrap_transaction(node):
    await _open_and_close(node)
    content = Files().read_file(f"{node.log_directory}/00000000000000000000.log")
    headers = [header for _, header in iterate_batches(content)]
    assert [header.is_control for header in headers[:2]] == [True, False]
    # The levels are between the transaction's begin, a config, and its end.
    assert [header.record_count for header in headers[:2]] == [1, 3 + len(new_cluster_features())]
    assert [header.base_offset for header in headers[:2]] == [0, 1]
    assert {header.leader_epoch for header in headers} == {1}


@pytest.mark.parametrize("clean", [True, False])
async def test_a_restart_gives_the_same_cluster_in_the_next_epoch(node, clean):
    log = await node.start()
    await node.create(log, new_topic("a", 3, configs={"retention.ms": "7"}), new_topic("b"))
    if clean:
        await log.close()
    before = log.follower.image
    log = await node.open()
    await log.close()
    after, epoch = log.follower.image, log.node.leadership.epoch
    assert epoch == 2
    assert after.topics == before.topics
    assert after.configs == before.configs
    assert after.brokers == before.brokers
    assert after.offset == before.offset + 2  # the new leader's records


async def test_every_start_begins_a_new_epoch(node):
    epochs = []
    for _ in range(3):
        log = await node.open()
        epochs.append(log.node.leadership.epoch)
    assert epochs == [1, 2, 3]
    assert b'"leaderEpoch":3' in Files().read_file(f"{node.log_directory}/quorum-state")


async def test_producer_ids_are_not_reused_after_a_crash(node):
    blocks = []
    for _ in range(3):
        log = await node.start()
        epoch = log.follower.image.brokers[1].epoch
        body = {"broker_id": 1, "broker_epoch": epoch}
        answer = await LocalChannel(log).ask(ApiKey.ALLOCATE_PRODUCER_IDS, body)
        blocks.append(answer.producer_id_start)
    assert blocks == [0, 1000, 2000]


async def test_concurrent_requests_cannot_both_create_a_topic(node):
    exists = ErrorCode.TOPIC_ALREADY_EXISTS
    log = await node.start()
    results = await asyncio.gather(*(node.create(log, new_topic("a")) for _ in range(3)))
    await log.close()
    assert [ErrorCode(result[0].get("error_code", 0)) for result in results] == [
        ErrorCode.NONE,
        exists,
        exists,
    ]


class SlowSync:
    """A disk that blocks syncs until released, and counts them."""

    def __init__(self, monkeypatch):
        self.count = 0
        self.begun, self.admission = threading.Event(), threading.Event()
        self.error = None
        real = MetadataStore.sync

        def sync(store):
            self.begun.set()
            assert self.admission.wait(10)
            self.count += 1
            if self.error is not None:
                raise self.error
            real(store)

        monkeypatch.setattr(MetadataStore, "sync", sync)


async def test_changes_are_visible_and_answered_only_once_on_disk(node, monkeypatch):
    log = await node.start()
    disk = SlowSync(monkeypatch)
    first = asyncio.create_task(node.create(log, new_topic("a")))
    # A response without records waits for the records before it.
    second = asyncio.create_task(node.create(log, new_topic("a")))
    for _ in range(20):
        await next_turn()
    states = [first.done(), second.done(), "a" in log.follower.image.topics]
    disk.admission.set()
    await asyncio.gather(first, second)
    states.append("a" in log.follower.image.topics)
    await log.close()
    assert states == [False, False, False, True]


async def test_one_sync_covers_all_waiting_requests(node, monkeypatch):
    log = await node.start()
    disk = SlowSync(monkeypatch)
    tasks = [asyncio.create_task(node.create(log, new_topic(f"t{i}"))) for i in range(50)]
    for _ in range(200):
        await next_turn()
    disk.admission.set()
    await asyncio.gather(*tasks)
    await log.close()
    assert disk.count <= 3


async def test_subscriber_gets_changes_in_order_before_the_response(node):
    log = await node.start()
    changes = []

    async def listener(change, image):
        await next_turn()
        # No client sees a topic whose partitions do not exist yet.
        assert log.follower.image.offset < image.offset
        changes.append((sorted(change.created), image.offset))

    log.follower.subscribe("the test", listener)

    async def create(name):
        await node.create(log, new_topic(name))
        assert any(name in created for created, _ in changes)
        assert name in log.follower.image.topics

    await asyncio.gather(*(create(f"t{i}") for i in range(5)))
    await log.close()
    assert [created for created, _ in changes] == [[f"t{i}"] for i in range(5)]
    assert changes == sorted(changes, key=lambda entry: entry[1])


async def test_failing_subscriber_does_not_block_the_others(node, caplog):
    log = await node.start()

    async def listener(change, image):
        if "bad" in change.created:
            raise ValueError("no")

    log.follower.subscribe("the test", listener)
    await node.create(log, new_topic("bad"))
    await node.create(log, new_topic("good"))
    await log.close()
    assert set(log.follower.image.topics) == {"bad", "good"}
    assert "the test cannot apply the metadata change" in caplog.text


async def test_failed_sync_fails_waiting_and_later_requests(node, monkeypatch, caplog):
    log = await node.start()
    disk = SlowSync(monkeypatch)
    disk.error = OSError(errno.EIO, "disk on fire")
    disk.admission.set()
    codes = []
    for _ in range(2):
        with pytest.raises(KafkaError) as raised:
            await node.create(log, new_topic("a"))
        codes.append(raised.value.code)
    is_visible = "a" in log.follower.image.topics
    assert codes == [ErrorCode.KAFKA_STORAGE_ERROR] * 2
    assert not is_visible
    assert "disk on fire" in caplog.text


async def test_disk_full_fails_only_its_request(node, monkeypatch, caplog):
    log = await node.start()

    def write_at(file, position, buffers):
        raise OSError(errno.ENOSPC, "no space")

    with monkeypatch.context() as patch:
        patch.setattr(DataFile, "write_at", write_at)
        for _ in range(3):
            with pytest.raises(KafkaError, match="no space"):
                await node.create(log, new_topic("a"))
    await node.create(log, new_topic("b"))
    await log.close()
    log = await node.open()
    await log.close()
    assert set(log.follower.image.topics) == {"b"}
    assert caplog.text.count("no space") == 1


async def test_failed_write_leaves_the_log_unchanged(node, monkeypatch):
    log = await node.start()

    def append(store, buffers, headers):
        raise OSError(errno.EIO, "no space")

    with monkeypatch.context() as patch:
        patch.setattr(MetadataStore, "append", append)
        with pytest.raises(KafkaError, match="no space"):
            await node.create(log, new_topic("a"))
    log = await node.open()
    await log.close()
    assert set(log.follower.image.topics) == set()


async def test_failed_operation_changes_nothing_and_the_next_runs(node):
    def failing(image, now_ms):
        yield
        raise KafkaError(ErrorCode.INVALID_REQUEST, "no")

    log = await node.start()
    before = log.follower.image
    with pytest.raises(KafkaError):
        await log.submit(failing)
    unchanged = log.follower.image is before
    await node.create(log, new_topic("a"))
    await log.close()
    assert (unchanged, set(log.follower.image.topics)) == (True, {"a"})


async def test_change_completes_when_its_request_is_cancelled(node, monkeypatch):
    log = await node.start()
    disk = SlowSync(monkeypatch)
    task = asyncio.create_task(node.create(log, new_topic("a")))
    for _ in range(20):
        await next_turn()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    disk.admission.set()
    await node.create(log, new_topic("b"))
    await log.close()
    assert set(log.follower.image.topics) == {"a", "b"}


async def test_closed_log_refuses_requests(node):
    log = await node.start()
    for _ in range(2):
        await log.close()
    with pytest.raises(KafkaError) as raised:
        await node.create(log, new_topic("a"))
    assert raised.value.code is ErrorCode.NOT_CONTROLLER


async def test_large_change_does_not_block_the_loop(node):
    log = await node.start()
    task = asyncio.create_task(node.create(log, new_topic("a", 9_000)))
    turns = 0
    while not task.done():
        await next_turn()
        turns += 1
    await log.close()
    partitions = len(log.follower.image.topics["a"].partitions)
    assert partitions == 9_000
    assert turns >= 5


async def test_failed_write_does_not_undo_a_change_being_published(node, monkeypatch):
    log = await node.start()
    entered, go = asyncio.Event(), asyncio.Event()

    async def listen(change, image):
        entered.set()
        await go.wait()

    def append(store, buffers, headers):
        raise OSError(errno.ENOSPC, "no space")

    log.follower.subscribe("the test", listen)
    first = asyncio.create_task(node.create(log, new_topic("a")))
    await entered.wait()
    monkeypatch.setattr(MetadataStore, "append", append)
    with pytest.raises(KafkaError):
        await node.create(log, new_topic("b"))
    go.set()
    [answer] = await first
    await log.close()
    assert answer.get("error_code", 0) == 0


async def test_synced_changes_are_answered_even_if_the_disk_then_fails(node, monkeypatch):
    log = await node.start()
    disk = SlowSync(monkeypatch)
    entered, go = asyncio.Event(), asyncio.Event()

    async def listen(change, image):
        if "a" in change.created:
            entered.set()
            await go.wait()

    def append(store, buffers, headers):
        raise OSError(errno.EIO, "disk on fire")

    log.follower.subscribe("the test", listen)
    tasks = [asyncio.create_task(node.create(log, new_topic("x")))]
    while not disk.begun.is_set():  # everything from now on belongs to the next sync
        await next_turn()
    tasks += [asyncio.create_task(node.create(log, new_topic(name))) for name in "ab"]
    while len(log.term.engine.machine.image.topics) < 3:
        await next_turn()
    disk.admission.set()
    await entered.wait()
    monkeypatch.setattr(MetadataStore, "append", append)
    for _ in range(2):
        with pytest.raises(KafkaError, match="disk on fire"):
            await node.create(log, new_topic("c"))
    go.set()
    answers = [await task for task in tasks]
    with pytest.raises(KafkaError, match="disk on fire"):
        await log.submit(write())
    await log.close()
    assert disk.count == 2  # one for "a" and "b", none after the failure
    assert [topic.get("error_code", 0) for [topic] in answers] == [0, 0, 0]
    assert set(log.follower.image.topics) == {"x", "a", "b"}


async def test_nothing_is_written_after_a_failed_sync(node, monkeypatch):
    """A second fdatasync succeeds although the first has lost pages."""
    log = await node.start()
    monkeypatch.setattr(Slices, "SECONDS", 0.0)
    disk = SlowSync(monkeypatch)
    disk.error = OSError(errno.EIO, "disk on fire")

    def slow(image, now_ms):
        disk.admission.set()
        while log.term.log.failure is None:
            yield
        disk.error = None
        return ControllerResult("done", [NO_OP])

    lost = asyncio.create_task(node.create(log, new_topic("lost")))
    await next_turn()
    with pytest.raises(KafkaError) as raised:
        await log.submit(slow)
    with pytest.raises(KafkaError):
        await lost
    assert (raised.value.code, "lost" in log.follower.image.topics) == (
        ErrorCode.KAFKA_STORAGE_ERROR,
        False,
    )
