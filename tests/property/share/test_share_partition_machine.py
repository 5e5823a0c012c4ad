"""A share partition under random steps, compared with what members may rely on (KIP-932).

No record is granted to two members at once, a delivery count never falls, an acknowledgement is
accepted only while the member's lock lasts, and a persisted acceptance is final. When members only
accept, every record is finished.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.support.coordinators.share_kit import LIMITS, ShareKit
from wirebroker.coordinator.share_partitions.acknowledgement import AckType
from wirebroker.coordinator.share_partitions.record_state import RecordState

if TYPE_CHECKING:
    from collections.abc import Sequence

MEMBERS = st.sampled_from(["a", "b", "c"])
SOME = st.integers(0, 99)
SIZES = st.sampled_from([1, 2, 5, 12, 30])
SELDOM = st.sampled_from([False] * 4 + [True])
RARELY = st.sampled_from([False] * 9 + [True])
TYPES = st.sampled_from([0, 1, 1, 2, 2, 3, 4])
TIMES_MS = st.sampled_from([1, 300, 999, 1_000, 3_000])
# More rounds than deliveries of any record.
LAST_ROUNDS = 400


class SharePartitionMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.kit = ShareKit()

    @initialize(
        limit=st.sampled_from([2, 3, 5, 10]),
        locks=st.sampled_from([10, 40, 200]),
        has_dead_letters=st.booleans(),
    )
    def begin(self, limit: int, locks: int, *, has_dead_letters: bool) -> None:
        self.kit = ShareKit(
            LIMITS._replace(
                delivery_count_limit=limit,
                max_record_locks=locks,
                has_dead_letters=has_dead_letters,
            )
        )
        self.kit.append(5, 12, 1, 30)

    @rule(sizes=st.lists(SIZES, min_size=1, max_size=4))
    def append(self, sizes: list[int]) -> None:
        self.kit.append(*sizes)

    @rule(member=MEMBERS, count=SIZES, size=SIZES, exactly=st.booleans())
    def fetch(self, member: str, count: int, size: int, *, exactly: bool) -> None:
        self.kit.fetch(member, count, batch_size=size, exactly=exactly)

    @precondition(lambda self: self.kit.grants)
    @rule(which=SOME, count=SIZES, types=st.lists(TYPES, min_size=1, max_size=5))
    def acknowledge_own(self, which: int, count: int, types: list[int]) -> None:
        first, member, last = self.run_of_one_member(which, count)
        number = last - first + 1
        each = types[:1] if len(types) == 1 else [types[i % len(types)] for i in range(number)]
        assert not self.kit.is_refused(member, (first, last, each)), "its own records"

    def run_of_one_member(self, which: int, count: int) -> tuple[int, str, int]:
        offsets = sorted(self.kit.grants)
        first = last = offsets[which % len(offsets)]
        member = self.kit.grants[first].member
        while last - first + 1 < count:
            grant = self.kit.grants.get(last + 1)
            if grant is None or grant.member != member:
                break
            last += 1
        return first, member, last

    @rule(member=MEMBERS, first=SOME, count=SIZES, ack_type=TYPES)
    def acknowledge_any(self, member: str, first: int, count: int, ack_type: int) -> None:
        first += max(0, self.kit.partition.start_offset - 10)
        last = first + count - 1
        start = self.kit.partition.start_offset
        offsets = range(max(first, start), last + 1)
        is_owner = all(
            offset in self.kit.grants and self.kit.grants[offset].member == member
            for offset in offsets
        )
        is_refused = self.kit.is_refused(member, (first, last, [ack_type]))
        assert is_owner or is_refused, "records of others, or of an expired lock"

    @rule(member=MEMBERS)
    def leave(self, member: str) -> None:
        self.kit.leave(member)
        assert not self.kit.owned(member)

    @precondition(lambda self: self.kit.pending)
    @rule(which=SOME, fails=SELDOM)
    def persister_answers(self, which: int, *, fails: bool) -> None:
        self.kit.answer(which, fails=fails)

    @precondition(lambda self: self.kit.dead)
    @rule(which=SOME)
    def write_dead_letters(self, which: int) -> None:
        self.kit.bury(which)

    @rule(ms=TIMES_MS)
    def time_passes(self, ms: int) -> None:
        self.kit.advance(ms)

    @rule(count=SIZES, is_done=RARELY)
    def log_start_moves(self, count: int, *, is_done: bool) -> None:
        if is_done:
            self.kit.move_log_start(self.kit.log_start + count)

    @rule(which=SOME, is_done=RARELY)
    def compaction(self, which: int, *, is_done: bool) -> None:
        if is_done:
            self.kit.compact(which)

    @rule(is_done=RARELY)
    def leader_changes(self, *, is_done: bool) -> None:
        if is_done:
            self.kit.restart()

    @invariant()
    def laws_hold(self) -> None:
        self.kit.check()

    def teardown(self) -> None:
        self.finish_all()

    def finish_all(self) -> None:
        kit = self.kit
        kit.append(1)  # compaction never removes the last record
        for _ in range(LAST_ROUNDS):
            while kit.pending:
                kit.answer()
            while kit.dead:
                kit.bury()
            kit.advance(1_000)
            for first, last, _ in kit.fetch("a"):
                kit.acknowledge("a", (first, last, [AckType.ACCEPT]))
                kit.answer()
            if kit.partition.start_offset > kit.end - 1:
                break
        assert kit.partition.start_offset == kit.end, "a record is never finished"
        self.check_outcomes(range(kit.log_start, kit.end))

    def check_outcomes(self, offsets: Sequence[int]) -> None:
        done = {RecordState.ACKNOWLEDGED, RecordState.ARCHIVED}
        kept = {
            offset
            for batch in self.kit.batches
            for offset in range(batch.base_offset, batch.last_offset + 1)
        }
        for offset in kept.intersection(offsets):
            state = self.kit.stored.get(offset)
            assert state is None or state[0] in done, f"{offset} is neither accepted nor archived"


SharePartitionMachine.TestCase.settings = settings(
    max_examples=40, stateful_step_count=40, deadline=None, print_blob=True
)
TestSharePartitionMachine = SharePartitionMachine.TestCase
