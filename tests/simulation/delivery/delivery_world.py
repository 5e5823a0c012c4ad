"""Clients, instances that are killed, paused and fenced, and what must hold in the end.

- Each input record is delivered once, becomes one dead letter, or was replaced or cancelled.
- None is delivered before its due time.
- An entry is not delivered once its partition was applied up to what replaces or cancels it.
- At rest nothing is left in the pending topic.
"""

from __future__ import annotations

from collections import Counter
from random import Random

from tests.simulation.delivery.simulated_instance import SimulatedInstance
from tests.simulation.delivery.transactional_cluster import RefusedError, TransactionalCluster
from wirebroker.delivery.model.entry import EntryCommand, decode_entry
from wirebroker.delivery.model.rules import DeliveryRules

PENDING = "__delivery"
RULES = DeliveryRules(
    group="delivery",
    deliver_topics=("deliver",),
    retry_topics=("retry",),
    pending_topic=PENDING,
    targets=("orders", "invoices"),
    max_delay_ms=10**9,
    max_attempts=10,
)
TOPICS = {
    "deliver": 2,
    "retry": 1,
    PENDING: 2,
    "orders": 1,
    "invoices": 1,
    "deliver.dead-letters": 1,
    "orders.dead-letters": 1,
}
STEPS = 1_500
RECORDS = 60
INSTANCES = ("a", "b", "c")


class DeliveryWorld:
    """One run, from a seed."""

    def __init__(self, seed: int, instance: type[SimulatedInstance] = SimulatedInstance) -> None:
        self.random = Random(seed)
        self.cluster = TransactionalCluster(TOPICS, self.random)
        self.instance = instance
        self.alive: list[SimulatedInstance] = []
        self.past: list[SimulatedInstance] = []
        # By value: the record's due time, and its id or None.
        self.sent: dict[bytes, tuple[int, str | None]] = {}
        self.pending_log: list = []
        self.noted = [0] * TOPICS[PENDING]
        self.totals: Counter[str] = Counter()

    def run(self) -> None:
        for _ in range(STEPS):
            self.disturb()
            self.step()
        self.cluster.now_ms += 10**7
        self.alive.clear()
        for name in INSTANCES:
            self.cluster.kick(name)
            self.start(name)
        for _ in range(40 * STEPS):
            self.step(calm=True)
            if self.is_at_rest():
                break
        self.check()

    def step(self, *, calm: bool = False) -> None:
        self.cluster.turn()
        self.record_pending()
        self.cluster.now_ms += self.random.randint(0, 20)
        if not calm and len(self.sent) < RECORDS and self.random.random() < 0.1:
            self.send()
        if self.alive:
            instance = self.random.choice(self.alive)
            try:
                next(instance.running)
            except RefusedError:
                self.end(instance)
                self.totals["fenced"] += 1
                if calm:
                    self.start(instance.name)

    def disturb(self) -> None:
        dice = self.random.random()
        if dice < 0.02 or not self.alive:
            # Perhaps beside an older life of the same name.
            self.start(self.random.choice(INSTANCES))
        elif dice < 0.03:
            self.end(self.random.choice(self.alive))
            self.totals["killed"] += 1
        elif dice < 0.05:
            self.cluster.kick(self.random.choice(INSTANCES))
            self.totals["kicked"] += 1
        elif dice < 0.08:
            number = self.random.randrange(TOPICS[PENDING])
            log = self.cluster.partitions[PENDING, number]
            log.compact(self.random, self.read_up_to(number))

    def read_up_to(self, number: int) -> int:
        """Return the offset of the pending topic that all instances have read."""
        partitions = (each.machine.partitions.get(number) for each in self.alive)
        return min((each.next_offset for each in partitions if each is not None), default=0)

    def start(self, name: str) -> None:
        self.alive.append(self.instance(self.cluster, name, RULES))

    def end(self, instance: SimulatedInstance) -> None:
        self.alive.remove(instance)
        self.past.append(instance)

    def send(self) -> None:
        value = b"%d" % len(self.sent)
        if self.random.random() < 0.2:
            self.send_retry(value)
            return
        after = self.random.choice((0, 100, 2_000, 10_000))
        identity = self.random.choice((None, None, "x", "y", "z"))
        target = self.random.choice((b"orders", b"orders", b"invoices"))
        headers = [("deliver-to", target), ("deliver-after", b"%d" % after)]
        if identity is not None:
            headers.append(("deliver-id", identity.encode()))
            if self.random.random() < 0.2:
                headers = headers[-1:]
                self.append("deliver", None, headers)
                self.totals["cancellations"] += 1
                return
        if self.random.random() < 0.1:
            headers[0] = ("deliver-to", b"elsewhere")
        self.append("deliver", value, headers)
        self.sent[value] = (self.cluster.now_ms + after, identity)

    def send_retry(self, value: bytes) -> None:
        done = self.random.randrange(4)
        headers = [("retry-topic", b"orders"), ("retry-attempt", b"%d" % done)]
        self.append("retry", value, headers)
        pause = (1_000, 10_000, 60_000, 0)[done]
        self.sent[value] = (self.cluster.now_ms + pause, None)

    def append(self, topic: str, value: bytes | None, headers: list) -> None:
        place = (topic, self.random.randrange(TOPICS[topic]))
        log = self.cluster.partitions[place]
        log.append(b"k", value, tuple(headers), self.cluster.now_ms, None)

    def record_pending(self) -> None:
        """Note the committed entries of the pending topic before compaction removes them."""
        for number in range(TOPICS[PENDING]):
            log = self.cluster.partitions[PENDING, number]
            for record in log.committed(self.noted[number]):
                if record.value is not None:
                    assert record.key is not None
                    entry = decode_entry(record.key.decode(), record.value)
                    self.pending_log.append((number, record.offset, entry))
            self.noted[number] = log.last_stable_offset

    def is_at_rest(self) -> bool:
        if any(not each.is_over for each in self.cluster.transactions):
            return False
        pending = (self.cluster.partitions[PENDING, n] for n in range(TOPICS[PENDING]))
        is_read = all(
            self.cluster.offsets.get((topic, number), 0) == partition.end
            for (topic, number), partition in self.cluster.partitions.items()
            if topic in RULES.input_topics
        )
        return is_read and all(
            all(value is None for value in {r.key: r.value for r in log.committed(0)}.values())
            for log in pending
        )

    # -- laws

    def check(self) -> None:
        assert self.is_at_rest(), "entries are left in the pending topic"
        delivered = [
            record
            for target in RULES.targets or ()
            for record in self.cluster.partitions[target, 0].committed(0)
        ]
        letters = [
            record
            for (topic, _), log in self.cluster.partitions.items()
            if topic.endswith(".dead-letters")
            for record in log.committed(0)
        ]
        counts = Counter(record.value for record in (*delivered, *letters))
        twice = [value for value, count in counts.items() if count > 1]
        assert not twice, f"written more than once: {twice}"
        for record in delivered:
            assert record.value is not None
            due_ms, _ = self.sent[record.value]
            assert record.timestamp_ms >= due_ms, f"{record.value!r} is early"
        overridden = self.check_overridden(counts)
        lost = [value for value in self.sent if value not in counts and value not in overridden]
        assert not lost, f"lost: {lost}"
        self.totals["delivered"] += len(delivered)
        self.totals["dead letters"] += len(letters)
        self.totals["overridden"] += len(overridden)

    def check_overridden(self, counts: Counter) -> set[bytes]:
        """Return the values that were replaced or cancelled while they were pending."""
        planned = {
            name: offset
            for each in (*self.past, *self.alive)
            for name, offset in each.planned_at.items()
        }
        overridden = set()
        by_id: dict = {}
        for _, offset, entry in sorted(self.pending_log, key=lambda row: row[:2]):
            if entry.delivery_id is None:
                continue
            earlier = by_id.pop(entry.delivery_id, None)
            if earlier is not None and earlier.value not in counts:
                overridden.add(earlier.value)
            elif earlier is not None and earlier.name in planned:
                assert planned[earlier.name] <= offset, f"{earlier.value!r} was overridden"
            if not isinstance(entry, EntryCommand):
                by_id[entry.delivery_id] = entry
        return overridden
