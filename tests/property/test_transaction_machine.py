"""A transactional id under random requests, loads, failed appends, feature levels and time.

The reference holds the guarantees to clients: one transaction at a time; it is decided once, by the
newest epoch or by the coordinator, and sent to each of its partitions; no epoch is assigned twice;
requests of older epochs change nothing, however late they arrive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.support.coordinators.transaction_kit import TIMEOUT_MS, Transactions
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.transactions import expiry as transaction_expiry

if TYPE_CHECKING:
    from collections.abc import Callable

Pair = tuple[int, int]
LAST_EPOCH = 32_766
SELDOM = st.sampled_from([False] * 7 + [True])
STRANGER = {ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_ID_MAPPING}
CONCURRENT = ErrorCode.CONCURRENT_TRANSACTIONS


class Decided(NamedTuple):
    is_commit: bool
    partitions: frozenset[int]
    # The client's next pair; None if no client receives it.
    following: Pair | None


class TransactionMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.real = Transactions()
        self.present: Pair | None = None
        self.given: list[Pair] = []
        self.partitions: frozenset[int] = frozenset()
        self.begun_ms = 0
        self.decided: Decided | None = None
        # The pair that ended the last transaction, and how, until anything else happens.
        self.last_end: tuple[Pair, bool] | None = None

    @initialize(version=st.sampled_from([0, 1, 2]), epoch=st.sampled_from([0, LAST_EPOCH - 2]))
    def begin(self, version: int, epoch: int) -> None:
        self.real = Transactions(version=version)
        if epoch:
            producer_id, _ = self.real.init()
            moved = self.real.of()._replace(producer_epoch=epoch)
            self.real.run(lambda *_: self.real.shard.move(moved))
            self.present = producer_id, epoch

    # -- requests ----------------------------------------------------------------------------

    @rule(known=st.sampled_from([-3, -3, -2, -1, 0]), fails=SELDOM)
    def init(self, known: int, *, fails: bool) -> None:
        pair = None if known == -3 else self.pair(known)
        answer = self.ask(lambda: self.real.init(known=pair), fails=fails)
        if answer is ErrorCode.NOT_COORDINATOR:
            return
        if self.decided is not None:
            assert answer is CONCURRENT
        elif answer is CONCURRENT:
            assert self.partitions
            self.decide(is_commit=False)
        elif isinstance(answer, tuple):
            assert not self.partitions
            self.last_end = None
            if pair is not None and answer == self.present and pair != self.present:
                return  # a retry after a lost response
            self.give(answer)
            self.present = answer
        else:
            assert pair is not None, "who has nothing is given something"
            assert pair != self.present
            assert answer in {ErrorCode.PRODUCER_FENCED, ErrorCode.UNKNOWN_SERVER_ERROR}

    @rule(
        who=st.sampled_from([0, 0, -1, -2]),
        index=st.integers(0, 3),
        client=st.sampled_from([0, 2]),
        fails=SELDOM,
    )
    def add(self, who: int, index: int, client: int, *, fails: bool) -> None:
        pair = self.pair(who)
        answer = self.ask(lambda: self.real.add(pair, index, client=client), fails=fails)
        if answer is ErrorCode.NOT_COORDINATOR:
            return
        if self.decided is not None:
            assert answer is CONCURRENT
        elif pair == self.present and client > 0 and not self.real.version:
            assert answer is ErrorCode.UNSUPPORTED_VERSION
        elif pair == self.present:
            assert answer is ErrorCode.NONE
            if not self.partitions:
                self.begun_ms = self.real.now_ms
            self.partitions |= {index}
            self.last_end = None
        else:
            assert answer in STRANGER

    @rule(who=st.sampled_from([0, 0, -1, -2]), is_commit=st.booleans(), fails=SELDOM)
    def end(self, who: int, *, is_commit: bool, fails: bool) -> None:
        """End it like clients of transaction.version 2."""
        pair = self.pair(who)
        answer = self.ask(lambda: self.real.end(pair, is_commit=is_commit), fails=fails)
        if answer is ErrorCode.NOT_COORDINATOR:
            return
        if self.decided is not None:
            assert answer is CONCURRENT
        elif pair == self.present:
            if (self.partitions or not is_commit) and not self.real.version:
                assert answer is ErrorCode.UNSUPPORTED_VERSION
            elif self.partitions or not is_commit:
                self.give(answer)
                self.decide(is_commit=is_commit, following=answer)
                self.last_end = pair, is_commit
            else:
                assert answer is ErrorCode.INVALID_TXN_STATE
        elif self.last_end == (pair, is_commit):
            assert answer == self.present, "a retry gets the response of the first attempt"
        elif not isinstance(answer, tuple):
            assert answer in STRANGER | {ErrorCode.INVALID_TXN_STATE}
        else:
            assert not self.partitions, "a late end has ended a newer transaction"
            assert answer == self.present

    @rule(who=st.sampled_from([0, -1, -2]), is_commit=st.booleans())
    def end_as_before(self, who: int, *, is_commit: bool) -> None:
        """End it like older clients."""
        pair = self.pair(who)
        answer = self.real.end(pair, is_commit=is_commit, client=0)
        if self.decided is None and self.partitions and pair == self.present:
            assert answer == (-1, -1)
            self.decide(is_commit=is_commit, following=pair)
        elif answer == (-1, -1):
            assert self.decided is None
            assert not self.partitions
            assert pair == self.present
        else:
            assert answer in STRANGER | {CONCURRENT, ErrorCode.INVALID_TXN_STATE}

    # -- events ------------------------------------------------------------------------------

    @precondition(lambda self: self.decided is not None)
    @rule()
    def write_markers(self) -> None:
        written = self.real.write_markers()
        decided = self.decided
        assert decided is not None
        [effect] = written
        assert effect.marker.is_commit == decided.is_commit
        assert effect.partitions == {("a", index) for index in decided.partitions}
        assert self.present is not None
        assert effect.marker.producer_id == self.present[0]
        assert effect.marker.producer_epoch >= self.present[1]
        transaction = self.real.of()
        pair = (transaction.producer_id, transaction.producer_epoch)
        assert decided.following in {None, pair}
        self.present, self.decided = pair, None

    @precondition(lambda self: self.partitions)
    @rule(ms=st.sampled_from([1, TIMEOUT_MS // 2, TIMEOUT_MS + 1]))
    def advance(self, ms: int) -> None:
        self.real.now_ms += ms
        aborted = self.real.abort_timed_out()
        is_over = self.real.now_ms - self.begun_ms > TIMEOUT_MS
        assert bool(aborted) == (bool(self.partitions) and is_over)
        if aborted:
            self.decide(is_commit=False)

    @precondition(lambda self: self.present is not None and self.decided is None)
    @rule(is_long=SELDOM)
    def expire(self, *, is_long: bool) -> None:
        """Expire unused ids, after longer than any is kept."""
        shard = self.real.shard
        self.real.now_ms += shard.settings.id_expiration_ms + 1 if is_long else 1
        for outcome in transaction_expiry.sweep_expired(shard, self.real.moment.wall_ms):
            self.real.run(lambda *_, outcome=outcome: outcome)
        if not shard.recorded:
            assert not self.partitions, "an open transaction is forgotten"
            self.present = self.last_end = None
        else:
            assert self.partitions or not is_long, "it is kept forever"

    @rule(version=st.sampled_from([0, 1, 2]))
    def update_features(self, version: int) -> None:
        """Finalize another transaction.version, which clients learn sooner or later."""
        self.real.version = version
        # A load loses what version 0 records do not contain.
        self.last_end = None

    @rule()
    def load(self) -> None:
        self.real = self.real.reloaded()

    @invariant()
    def what_is_durable_is_what_the_log_says(self) -> None:
        assert self.real.reloaded().shard.recorded == self.real.shard.recorded

    @invariant()
    def laws(self) -> None:
        self.real.shard.check()
        if self.decided is not None:
            assert self.real.of().state.is_prepared
        elif self.present is not None:
            assert not self.real.markers
            transaction = self.real.of()
            assert self.present == (transaction.producer_id, transaction.producer_epoch)
            assert transaction.partitions == {("a", index) for index in self.partitions}

    # -- helpers -----------------------------------------------------------------------------

    def ask(self, request: Callable[[], Any], *, fails: bool) -> Any:
        self.real.fails_with = ErrorCode.NOT_COORDINATOR if fails else None
        try:
            return request()
        finally:
            self.real.fails_with = None

    def give(self, pair: Any) -> None:
        assert isinstance(pair, tuple), pair
        assert pair not in self.given, "no epoch is given out twice"
        self.given.append(pair)
        self.last_end = None

    def decide(self, *, is_commit: bool, following: Pair | None = None) -> None:
        self.decided = Decided(is_commit, self.partitions, following)
        self.partitions = frozenset()
        self.last_end = None

    def pair(self, age: int) -> Pair:
        """Return the current pair, the one before it, or one that never existed."""
        if age == 0 and self.present is not None:
            return self.present
        if age == -1:
            older = [candidate for candidate in self.given if candidate != self.present]
            if older:
                return older[-1]
        return 5, 0


TestTransactionMachine = TransactionMachine.TestCase
TestTransactionMachine.settings = settings(
    max_examples=2 * settings().max_examples, stateful_step_count=50, deadline=None
)
