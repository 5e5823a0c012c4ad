"""An instance of the service on the simulated cluster: the machine, driven as by the process.

Each `yield` is a place where the instance can be killed, fenced or paused. Storing and delivering
take turns at random, as do their transactions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.delivery.transactional_cluster import RefusedError
from wirebroker.delivery.model.records import ReceivedRecord
from wirebroker.delivery.pending.machine import DeliveryMachine
from wirebroker.delivery.pending.partition import PendingPartition
from wirebroker.delivery.pending.store import PendingStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.simulation.delivery.transactional_cluster import TransactionalCluster
    from wirebroker.delivery.model.rules import DeliveryRules


PRODUCERS = {"intake": 1, "delivery": 2}
OVER = object()


class SimulatedInstance:
    """One life of an instance."""

    def __init__(self, cluster: TransactionalCluster, name: str, rules: DeliveryRules) -> None:
        self.cluster = cluster
        self.name = name
        self.rules = rules
        self.generation = -1
        self.positions: dict = {}
        self.machine = self.new_machine()
        # Of each delivered entry: the position up to which its partition was applied.
        self.planned_at: dict[str, int] = {}
        self.running = self.run()

    def new_machine(self) -> DeliveryMachine:
        topics = self.cluster.partitions
        count = sum(topic == self.rules.pending_topic for topic, _ in topics)
        return DeliveryMachine(self.rules, self, pending_count=count, most_records=4)

    def partition_count(self, topic: str, *, at_least: int = 1) -> int:
        del at_least
        return sum(each == topic for each, _ in self.cluster.partitions)

    def may_write(self, topic: str) -> bool:
        del topic
        return True

    def run(self) -> Iterator[None]:
        producers: dict = {}
        for kind, count in PRODUCERS.items():
            for number in range(count):
                producer = f"{self.name}-{kind}-{number}"
                epoch = self.cluster.init_producer(producer)
                producers.setdefault(kind, []).append((producer, epoch))
                yield
        lanes = self.lanes()
        open_lanes: dict = {}
        while True:
            yield
            if self.generation != self.cluster.generation or self.name not in self.cluster.members:
                yield from self.finish(open_lanes)
                yield from self.rejoin()
                continue
            self.read()
            kind, lane = self.cluster.random.choice(lanes)
            if lane in open_lanes:
                if next(open_lanes[lane], OVER) is OVER:
                    del open_lanes[lane]
            elif plan := lane(self.planning_time()):
                # The one that was idle the longest.
                producers[kind].append(producers[kind].pop(0))
                open_lanes[lane] = self.carry_out(plan, *producers[kind][-1])

    def lanes(self) -> list:
        """Return what plans transactions of a kind; one of each is open at a time."""
        return [("intake", self.machine.plan_intake), ("delivery", self.machine.plan_delivery)]

    def finish(self, open_lanes: dict) -> Iterator[None]:
        """Complete the open transactions before partitions are released."""
        for transaction in open_lanes.values():
            yield from transaction
        open_lanes.clear()

    def planning_time(self) -> int:
        return self.cluster.now_ms

    def rejoin(self) -> Iterator[None]:
        self.machine.release(list(self.positions), list(self.machine.partitions))
        self.positions.clear()
        if self.generation < 0 or self.name not in self.cluster.members:
            self.cluster.join(self.name, self)
        self.generation = self.cluster.generation
        topics = (*self.rules.input_topics, self.rules.pending_topic)
        for place in self.cluster.assignment(self.name, topics):
            while (offset := self.cluster.stable_offset(place)) is None:
                yield
                if self.generation != self.cluster.generation:
                    return
            if place[0] == self.rules.pending_topic:
                store = PendingStore(None)
                end = self.end_of(place)
                self.machine.partitions[place[1]] = PendingPartition(place[1], store, end)
            else:
                self.positions[place] = offset
            yield

    def end_of(self, place) -> int:
        return self.cluster.partitions[place].end

    def read(self) -> None:
        for place, position in self.positions.items():
            for record in self.cluster.partitions[place].committed(position)[:3]:
                self.positions[place] = record.offset + 1
                self.machine.receive(
                    ReceivedRecord(
                        topic=place[0],
                        partition=place[1],
                        offset=record.offset,
                        timestamp_ms=record.timestamp_ms,
                        key=record.key,
                        value=record.value,
                        headers=record.headers,
                    )
                )
        for number, partition in self.machine.partitions.items():
            log = self.cluster.partitions[self.rules.pending_topic, number]
            records = log.committed(partition.next_offset)
            for record in records[:10]:
                partition.apply(record.offset, record.key, record.value)
            if len(records) <= 10:
                partition.reach(log.last_stable_offset)
            if self.cluster.random.random() < 0.1:
                partition.save(self.cluster.now_ms, self.rules.pending_topic)

    def carry_out(self, plan, producer: str, epoch: int) -> Iterator[None]:
        generation = self.generation
        transaction = self.cluster.begin(producer, epoch)
        try:
            for output in plan.outputs:
                count = self.partition_count(output.topic)
                number = output.partition if output.partition is not None else 0
                assert number < count
                self.cluster.produce(
                    transaction, (output.topic, number), output.key, output.value, output.headers
                )
                if self.cluster.random.random() < 0.3:
                    yield
            for number, name in plan.ended:
                self.end_name(transaction, number, name)
            yield
            offsets = plan.input_offsets | {
                (self.rules.pending_topic, number): offset
                for number, offset in plan.pending_partitions.items()
            }
            self.cluster.commit_offsets(transaction, offsets, self.name, self, generation)
            yield
            self.cluster.end(transaction, commit=True)
        except RefusedError:
            yield
            yield from self.abort(transaction, epoch)
            unwritable = {
                output.topic
                for output in plan.outputs
                if output.topic != self.rules.pending_topic and self.cluster.random.random() < 0.3
            }
            self.machine.aborted(plan, {}, unwritable, self.cluster.now_ms)
            return
        for partition, name in plan.ended:
            self.planned_at[name] = plan.pending_partitions[partition]
        yield
        self.machine.committed(plan)

    def end_name(self, transaction, number: int, name: str) -> None:
        place = (self.rules.pending_topic, number)
        self.cluster.produce(transaction, place, name.encode(), None, ())

    def abort(self, transaction, epoch: int) -> Iterator[None]:
        if transaction.is_committed is None:
            self.cluster.end(transaction, commit=False)
        yield
