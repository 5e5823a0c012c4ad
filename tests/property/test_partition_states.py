"""Whatever happens to a cluster, its in-sync and eligible leader replicas are replicas.

After each request of a random history the image is checked (ClusterImage.check).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support.coordinators.controller_kit import InstantController
from tests.support.harness.budget import Budget
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.coordinator.controller.features.feature_control import feature_level
from wirebroker.coordinator.controller.image.cluster_image import NO_LEADER, PartitionImage
from wirebroker.coordinator.controller.partitions.leader_duties import elect_uncleanly
from wirebroker.coordinator.operation import complete
from wirebroker.coordinator.outcome import Moment

if TYPE_CHECKING:
    from random import Random

    import pytest

ELR = "eligible.leader.replicas.version"
BROKERS = (1, 2, 3, 4)
_TOPIC, _BROKER = 2, 4
_SAFE_DOWNGRADE = 2


class Cluster:
    """A controller and random events.

    Attributes:
        had_elr: Whether eligible leader replicas were ever finalized.
    """

    def __init__(self, random: Random) -> None:
        self.random = random
        self.had_elr = random.random() < 0.6
        levels = [feature_level("metadata.version", 30)]
        levels += [feature_level(ELR, 1)] if self.had_elr else []
        self.controller = InstantController(*levels)
        self.controller.serve(*BROKERS)
        self.incarnations = 100
        for number in range(3):
            self.create(f"t{number}")

    def step(self) -> None:
        """Apply one random event and check the invariants."""
        self.random.choice(
            [
                self.stop,
                self.die,
                self.come_back,
                self.come_back,
                self.move,
                self.take_back,
                self.change_isr,
                self.change_isr,
                self.elect,
                self.set_config,
                self.look_for_unclean,
                self.feature,
            ]
        )()
        self.check()

    def check(self) -> None:
        """Check when an ISR may be empty, which `ClusterImage.check` cannot know."""
        image = self.controller.image
        image.check()
        for topic in image.topics.values():
            for partition in topic.partitions.values():
                if not self.had_elr:
                    assert partition.isr
                    assert not partition.eligible_leader_replicas

    def create(self, name: str) -> None:
        replicas = self.random.sample(BROKERS, self.random.randint(1, 3))
        self.controller.create(name, replicas)

    def partition(self) -> tuple[str, PartitionImage]:
        name = self.random.choice(sorted(self.controller.image.topics))
        return name, self.controller.image.topics[name].partitions[0]

    def stop(self) -> None:
        broker = self.random.choice(BROKERS)
        for _ in range(2):
            self.controller.heartbeat(broker, want_shut_down=True)

    def die(self) -> None:
        self.controller.heartbeat(self.random.choice(BROKERS), want_fence=True)

    def come_back(self) -> None:
        broker = self.random.choice(BROKERS)
        before = self.controller.image.brokers[broker]
        if not before.fenced:
            return
        self.incarnations += 1
        self.controller.now_ms += 1_000_000  # its session expires
        self.controller.register(
            broker,
            incarnation_id=self.incarnations.to_bytes(16, "big"),
            previous_broker_epoch=self.random.choice([-1, before.epoch]),
        )
        self.controller.heartbeat(broker)

    def move(self) -> None:
        self.reassign(self.random.sample(BROKERS, self.random.randint(1, 3)))

    def take_back(self) -> None:
        self.reassign(None)

    def reassign(self, replicas: list[int] | None) -> None:
        name, _ = self.partition()
        target = {"partition_index": 0, "replicas": replicas}
        topics = [{"name": name, "partitions": [target]}]
        self.controller.ask(ApiKey.ALTER_PARTITION_REASSIGNMENTS, topics=topics)

    def change_isr(self) -> None:
        name, now = self.partition()
        if now.leader == NO_LEADER:
            return
        image = self.controller.image
        isr = {
            now.leader,
            *self.random.sample(now.replicas, self.random.randint(1, len(now.replicas))),
        }
        members = [
            {"broker_id": broker_id, "broker_epoch": image.brokers[broker_id].epoch}
            for broker_id in isr
        ]
        requested = {
            "partition_index": 0,
            "leader_epoch": now.leader_epoch,
            "new_isr_with_epochs": members,
            "partition_epoch": now.partition_epoch,
        }
        self.controller.ask(
            ApiKey.ALTER_PARTITION,
            broker_id=now.leader,
            broker_epoch=image.brokers[now.leader].epoch,
            topics=[{"topic_id": image.topics[name].topic_id, "partitions": [requested]}],
        )

    def elect(self) -> None:
        name, _ = self.partition()
        self.controller.ask(
            ApiKey.ELECT_LEADERS,
            election_type=self.random.choice([0, 1]),
            topic_partitions=[{"topic": name, "partitions": [0]}],
        )

    def set_config(self) -> None:
        name, value = self.random.choice(
            [
                ("min.insync.replicas", str(self.random.randint(1, 3))),
                ("min.insync.replicas", None),
                ("unclean.leader.election.enable", self.random.choice(["true", "false"])),
            ]
        )
        kind, of = self.random.choice([(_TOPIC, self.partition()[0]), (_BROKER, "")])
        change = {"name": name, "config_operation": int(value is None), "value": value}
        resource = {"resource_type": kind, "resource_name": of, "configs": [change]}
        self.controller.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, resources=[resource])

    def look_for_unclean(self) -> None:
        controller = self.controller
        looking = elect_uncleanly(controller.rules.config, controller.image, Moment(0, 0))
        controller.write(complete(looking).records)

    def feature(self) -> None:
        if not self.had_elr or self.random.random() < 0.7:
            return
        level = self.random.choice([0, 1])
        present = self.controller.image.features.get(ELR, 0)
        update: dict[str, Any] = {"feature": ELR, "max_version_level": level}
        update["upgrade_type"] = _SAFE_DOWNGRADE if level < present else 1
        self.controller.ask(ApiKey.UPDATE_FEATURES, feature_updates=[update])


def test_isr_and_eligible_leaders_are_always_replicas(
    pytestconfig: pytest.Config,
) -> None:
    budget = Budget(pytestconfig, seconds=2)
    for _ in budget.rounds():
        cluster = Cluster(budget.random)
        for _ in range(60):
            cluster.step()
