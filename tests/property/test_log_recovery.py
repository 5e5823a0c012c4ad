"""Random appends, crashes that damage unflushed data, and recovery, which always gives a prefix.

After each crash the log holds, byte for byte, the first appended batches, at least those below the
recovery point. Producers, leader epochs and aborted transactions equal a replay, indexes find every
offset, and the log stays usable. If only the process died, nothing is lost.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.support.harness.budget import SharedBudget
from tests.support.storage.time_search import offset_for_timestamp
from wirebroker.codecs.records.batch import build_batch, iterate_batches, read_batch_header
from wirebroker.codecs.records.codec import Codec
from wirebroker.config.rows.topic import TopicSettings
from wirebroker.storage.files import Files
from wirebroker.storage.log.leader_epochs import FILE_NAME as EPOCHS_NAME
from wirebroker.storage.log.log import Log
from wirebroker.storage.log.markers import prepare_end_marker
from wirebroker.storage.log.producers.producer_replay import apply_batch
from wirebroker.storage.log.producers.producer_state import ProducerState
from wirebroker.storage.recovery.log_recovery import load_log

if TYPE_CHECKING:
    from pathlib import Path

    from wirebroker.storage.log.index.transaction_index import AbortedTransaction

START_MS = 1_700_000_000_000


class Workload:
    """A log, its appended batches, and what of its files is certainly on disk."""

    def __init__(self, directory: Path, random: Random) -> None:
        self.random = random
        self.directory = directory
        directory.mkdir()
        self.settings = TopicSettings(
            segment_bytes=random.choice([400, 1500, 6000]),
            index_interval_bytes=random.choice([0, 100, 500]),
            segment_index_bytes=random.choice([24, 1 << 20]),
        )
        self.now_ms = START_MS
        self.leader_epoch = random.randrange(3)
        self.sequences: dict[int, int] = {}
        self.batches: list[bytes] = []
        self.log = self.open(recovery_point=0, clean=False)
        self.flushed: dict[str, bytes] = {}

    def open(self, *, recovery_point: int, clean: bool) -> Log:
        log = Log(
            str(self.directory),
            Files(),
            topic="t",
            partition=0,
            topic_id=bytes(16),
            settings=self.settings,
        )
        load_log(log, recovery_point=recovery_point, clean=clean, now_ms=self.now_ms)
        log.set_high_watermark(log.log_end_offset)
        log.check()
        return log

    def run(self) -> None:
        for _ in range(self.random.randrange(1, 40)):
            action = self.random.random()
            if action < 0.06:
                self.log.flush()
                self.flushed = {path.name: path.read_bytes() for path in self.directory.iterdir()}
            elif action < 0.10:
                self.leader_epoch += self.random.randrange(1, 4)
            elif action < 0.13:
                self.truncate()
            else:
                self.append()
        self.log.set_high_watermark(self.log.log_end_offset)
        self.log.check()

    def append(self) -> None:
        random = self.random
        self.now_ms += random.randrange(100)
        if random.random() < 0.3:
            self.append_in_transaction()
            return
        count = random.randrange(1, 4)
        producer_id = random.choice([-1, 1, 2, 3])
        sequence = self.sequences.get(producer_id, random.choice([0, 2**31 - 3]))
        batch = build_batch(
            [(None, random.randbytes(random.randrange(60)), ()) for _ in range(count)],
            timestamp_ms=self.now_ms - random.randrange(200),
            codec=random.choice([Codec.NONE, Codec.LZ4]),
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            base_sequence=sequence if producer_id >= 0 else -1,
        )
        if producer_id >= 0:
            self.sequences[producer_id] = (sequence + count) % 2**31
        result = self.log.append_as_leader(
            memoryview(batch), leader_epoch=self.leader_epoch, now_ms=self.now_ms
        )
        assert not result.is_duplicate
        self.batches.append(bytes(batch))

    def append_in_transaction(self) -> None:
        state = self.log.producer_state
        producer_id = self.random.choice([11, 12, 13])
        entry = state.producers.get(producer_id)
        if self.random.random() < 0.4:
            plan = prepare_end_marker(
                self.log,
                producer_id=producer_id,
                producer_epoch=0,
                coordinator_epoch=0,
                is_commit=self.random.random() < 0.4,
                transaction_version=0,
                leader_epoch=self.leader_epoch,
                now_ms=self.now_ms,
            )
            self.log.write(plan)
            self.log.commit(plan)
            self.batches.append(bytes(plan.records))
            return
        sequence = entry.last_sequence + 1 if entry else 0
        guard = state.begin_verification(
            producer_id,
            sequence=sequence,
            producer_epoch=0,
            supports_epoch_bump=False,
            now_ms=self.now_ms,
        )
        batch = build_batch(
            [(None, b"transactional", ())],
            timestamp_ms=self.now_ms,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequence,
            is_transactional=True,
        )
        self.log.append_as_leader(
            memoryview(batch), leader_epoch=self.leader_epoch, now_ms=self.now_ms, guard=guard
        )
        self.batches.append(bytes(batch))

    def truncate(self) -> None:
        """Truncate like a follower, and forget the producers' later batches."""
        if not self.batches:
            return
        offset = read_batch_header(self.random.choice(self.batches[-5:])).base_offset
        if self.log.truncate_to(offset, now_ms=self.now_ms):
            self.batches = [b for b in self.batches if read_batch_header(b).base_offset < offset]
            self.continue_sequences()
            for name in list(self.flushed):  # flushed bytes may have been truncated since
                path = self.directory / name
                if not path.exists():
                    del self.flushed[name]
                else:
                    size = path.stat().st_size
                    self.flushed[name] = self.flushed[name][:size]

    def crash(self, *, loses_power: bool) -> str:
        """End without a clean stop; return what happened to the files."""
        recovery_point = self.log.recovery_point
        self.log.close(clean=False)
        damages: list[str] = []
        if loses_power:
            paths = sorted(self.directory.iterdir())
            last_log = max(path for path in paths if path.suffix == ".log")
            damages = [
                self.damage(path, may_vanish=path.suffix != ".log" or path == last_log)
                for path in paths
                if self.random.random() < 0.4
            ]
        self.log = self.open(recovery_point=recovery_point, clean=False)
        return f"recovery point {recovery_point}, {damages}"

    def damage(self, path: Path, *, may_vanish: bool) -> str:
        content = bytearray(path.read_bytes())
        flushed = self.flushed.get(path.name)
        is_known = flushed is not None and content.startswith(flushed)
        start = len(flushed) if flushed is not None and is_known else 0
        if is_known and start == len(content):
            return f"{path.name} untouched"
        if may_vanish and flushed is None and self.random.random() < 0.1:
            path.unlink()
            return f"{path.name} vanished"
        position = self.random.randrange(start, len(content) + 1)
        kinds = ["cut", "zeros", "flip", "garbage", "more"]
        if path.name == EPOCHS_NAME:
            kinds = ["cut", "zeros"]  # without a checksum, torn writes are detected but not flips
        kind = self.random.choice(kinds)
        if kind == "cut":
            del content[position:]
        elif kind == "zeros":
            content[position:] = bytes(len(content) - position)
        elif kind == "flip" and position < len(content):
            if path.suffix == ".log":
                position = covered_by_crc(bytes(content), position)
            content[position] ^= 1 << self.random.randrange(8)
        elif kind == "garbage":
            content[position:] = self.random.randbytes(len(content) - position)
        elif kind == "more":
            content += self.random.choice(
                [bytes(70), self.random.randbytes(70), bytes(content[-90:])]
            )
        path.write_bytes(content)
        return f"{path.name} {kind} at {position} of {len(content)}, flushed {start}"

    def check_is_prefix(self, *, at_least: int) -> None:
        """Compare log, producers, epochs and indexes with the expected batches."""
        log = self.log
        assert log.log_end_offset >= at_least
        stored = self.read_everything()
        expected = [batch for batch in self.batches if offset_of(batch) < log.log_end_offset]
        assert stored == b"".join(expected)
        self.batches = expected
        assert log.log_end_offset == (end_of(expected[-1]) if expected else 0)
        replayed = ProducerState(Files(), str(self.directory), expiration_ms=1 << 60)
        epochs: list[tuple[int, int]] = []
        aborted: list[AbortedTransaction] = []
        for batch in expected:
            header = read_batch_header(batch)
            completed = apply_batch(replayed, header, batch)
            if completed is not None and completed.is_aborted:
                aborted.append(replayed.transactions.aborted_entry(completed))
            if not epochs or header.leader_epoch > epochs[-1][0]:
                epochs.append((header.leader_epoch, header.base_offset))
        assert log.producer_state.as_rows() == replayed.as_rows()
        assert log.producer_state.transactions.ongoing == replayed.transactions.ongoing
        assert log.leader_epochs.entries == epochs
        assert [entry for segment in log.segments for entry in segment.transaction_index] == aborted
        for segment in log.segments:
            assert segment.transaction_index.sanity_check(segment.base_offset) is None
            if segment is not log.segments.active:
                assert segment.sanity_check() is None
        for batch in self.random.sample(expected, min(5, len(expected))):
            log_slice = log.read(
                end_of(batch) - 1, 1, up_to_offset=log.log_end_offset, min_one=True
            ).slice
            assert log_slice is not None
            assert log_slice.read() == batch
            timestamp = read_batch_header(batch).max_timestamp
            by_time = offset_for_timestamp(log, timestamp, up_to_offset=log.log_end_offset)
            first = next(b for b in expected if read_batch_header(b).max_timestamp >= timestamp)
            assert by_time is not None
            assert by_time.offset == offset_of(first)
        self.continue_sequences()

    def continue_sequences(self) -> None:
        self.sequences = {
            row.producer_id: (row.last_sequence + 1) % 2**31
            for row in self.log.producer_state.as_rows()
            if row.producer_id < 10
        }

    def read_everything(self) -> bytes:
        log = self.log
        stored = b""
        offset = 0
        while offset < log.log_end_offset:
            log_slice = log.read(offset, 1 << 20, up_to_offset=log.log_end_offset).slice
            assert log_slice is not None
            stored += log_slice.read()
            offset = max(header.last_offset for _, header in iterate_batches(log_slice.read())) + 1
        return stored

    def stop_and_start(self) -> None:
        """Stop cleanly and restart; nothing may change."""
        rows = self.log.producer_state.as_rows()
        end_offset = self.log.log_end_offset
        self.log.close(clean=True)
        self.log = self.open(recovery_point=self.log.recovery_point, clean=True)
        assert self.log.log_end_offset == end_offset == self.log.recovery_point
        assert self.log.producer_state.as_rows() == rows
        self.flushed = {path.name: path.read_bytes() for path in self.directory.iterdir()}


def covered_by_crc(log: bytes, position: int) -> int:
    """Return `position`, or one in the same batch's length or CRC range."""
    for start, header in iterate_batches(log):
        inside = position - start
        if inside < header.size:
            return start + 30 if inside < 8 or 12 <= inside < 16 else position
    return position


def offset_of(batch: bytes) -> int:
    return read_batch_header(batch).base_offset


def end_of(batch: bytes) -> int:
    return read_batch_header(batch).last_offset + 1


def test_recovery_keeps_a_prefix_and_all_that_was_flushed(
    tmp_path: Path, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    budget = SharedBudget(request.config, seconds=8)
    crashes = 0
    for number in budget.rounds():
        story: list[str] = []
        workload = Workload(tmp_path / str(number), budget.random)
        try:
            for _ in range(budget.random.randrange(1, 4)):
                workload.run()
                loses_power = budget.random.random() < 0.8
                everything = workload.log.log_end_offset
                flushed = workload.log.recovery_point
                story.append(f"{len(workload.batches)} batches, power lost: {loses_power}")
                story.append(workload.crash(loses_power=loses_power))
                workload.check_is_prefix(at_least=flushed if loses_power else everything)
                crashes += 1
                if budget.random.random() < 0.5:
                    story.append("clean stop")
                    workload.stop_and_start()
                    workload.check_is_prefix(at_least=workload.log.log_end_offset)
        except Exception as error:  # raised again with the seed
            error.add_note(f"seed {budget.seed}, round {number}: {story}")
            raise
        workload.log.close(clean=False)
    with capsys.disabled():
        print(f"\n  log recovery: seed {budget.seed}, {crashes} crashes")  # noqa: T201


@pytest.mark.parametrize("name", [EPOCHS_NAME, "index", "timeindex", "snapshot"])
def test_a_clean_directory_with_a_missing_file_still_opens(tmp_path: Path, name: str) -> None:
    workload = Workload(tmp_path / "log", Random(5))
    for _ in range(30):
        workload.append()
    workload.stop_and_start()
    workload.log.close(clean=True)
    for path in workload.directory.iterdir():
        if path.name.endswith(name):
            path.unlink()
    workload.log = workload.open(recovery_point=workload.log.recovery_point, clean=True)
    assert workload.read_everything() == b"".join(workload.batches)
