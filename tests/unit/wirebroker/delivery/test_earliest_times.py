"""The due times in memory are those of the database after any changes of the index."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from wirebroker.delivery.pending.store import PendingStore

# Few values, so that entries often have the same name, queue or due time.
NAMES = st.sampled_from("abcdef")
TOPICS = st.sampled_from(["orders", "invoices", "payments"])
TIMES = st.integers(0, 5)


class PendingStoreMachine(RuleBasedStateMachine):
    """An index with random changes; the times are sometimes read between them, and then kept."""

    def __init__(self) -> None:
        super().__init__()
        self.store = PendingStore(None)

    def teardown(self) -> None:
        self.store.close()

    @rule(name=NAMES, topic=TOPICS, due_ms=TIMES)
    def put(self, name: str, topic: str, due_ms: int) -> None:
        self.store.put(name, topic, due_ms, None, b"v")

    @rule(name=NAMES)
    def remove(self, name: str) -> None:
        was_pending = self.store.has(name)
        assert self.store.remove(name) == was_pending

    @rule(name=NAMES, due_ms=TIMES)
    def set_due(self, name: str, due_ms: int) -> None:
        assert self.store.set_due(name, due_ms) == self.store.has(name)

    @rule(name=NAMES, until_ms=TIMES)
    def postpone(self, name: str, until_ms: int) -> None:
        before = self.store.entry(name)
        self.store.postpone(name, until_ms)
        assert self.store.entry(name) == before

    @rule()
    def commit(self) -> None:
        self.store.commit(0, 0, "topic")

    @rule(now_ms=TIMES)
    def read_times(self, now_ms: int) -> None:
        """Compare with the database; the next changes start from these times."""
        rows = self.store._database.execute("SELECT min(due), queue FROM entries GROUP BY queue")
        expected = rows.fetchall()
        assert self.store.next_due_ms() == min((due for due, _ in expected), default=None)
        due = [(due_ms, queue) for due_ms, queue in expected if due_ms <= now_ms]
        assert sorted(self.store.due_queues(now_ms)) == sorted(due)


TestPendingStore = PendingStoreMachine.TestCase
TestPendingStore.settings = settings(stateful_step_count=20)
