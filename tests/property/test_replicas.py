"""Replicas of one partition under random appends, fetches, elections and ISR changes.

With any delays and losses: committed records are in every replica of the ISR and the same in all,
no high watermark decreases within a role, and none passes the end of the maximal ISR.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.brokers.servers import memory_directory
from tests.support.harness.budget import SharedBudget
from tests.support.replicas.replica_cluster import MOST_LAG_MS, ReplicaCluster
from tests.support.replicas.roles import partition_image
from wirebroker.replica.leader_role import LeaderRole

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    from tests.support.replicas.replica_cluster import Node


def _ask(cluster: ReplicaCluster, random: Random, node: Node, isr: set[int]) -> None:
    leading = node.partition.leading
    if leading is None or leading.change is not None or not node.partition.is_leader:
        return
    change = node.partition.ask_for_isr(isr)
    fate = random.random()
    if fate < 0.6:
        cluster.decide(node, change)
    elif fate < 0.8:
        cluster.decide(node, change, is_answered=False)  # the metadata shows the change
    # Otherwise the request stays in flight forever: the leader keeps waiting for the maximal ISR.


def _step(cluster: ReplicaCluster, random: Random, numbers: count[int]) -> None:
    node = random.choice(list(cluster.nodes.values()))
    leading = node.partition.leading
    match random.randrange(12):
        case 0 | 1 | 2:
            if node.partition.is_leader:
                node.append(b"%d of %d" % (next(numbers), node.id))
        case 3 | 4 | 5 | 6:
            if cluster.fetch(node):
                leader = cluster.nodes[node.partition.leader]
                assert leader.partition.leading is not None
                _ask(cluster, random, leader, {*leader.partition.leading.isr, node.id})
        case 7 | 8:
            node.hear()
        case 9:
            if random.random() < 0.3:
                cluster.elect(node.id)
        case 10:
            lagging = node.partition.lagging_followers() if node.partition.is_leader else []
            if lagging:
                assert leading is not None
                _ask(cluster, random, node, set(leading.isr) - set(lagging))
        case _:
            cluster.clock.passed_ms += random.choice((1, MOST_LAG_MS // 3, MOST_LAG_MS))


@pytest.mark.parametrize("min_insync_replicas", [1, 2])
def test_committed_records_never_change_and_are_equal_on_all_replicas(
    pytestconfig: pytest.Config, tmp_path: Path, min_insync_replicas: int
) -> None:
    budget = SharedBudget(pytestconfig, seconds=3)
    committed = 0
    with memory_directory(tmp_path) as path:
        for number in budget.rounds():
            cluster = ReplicaCluster(
                path / str(number), min_insync_replicas=str(min_insync_replicas)
            )
            try:
                numbers = count()
                for _ in range(150):
                    _step(cluster, budget.random, numbers)
                    cluster.check()
                committed += len(cluster.acknowledged)
            except AssertionError as error:
                error.add_note(f"seed {budget.seed}, round {number}")
                raise
            finally:
                cluster.close()
    assert committed


_REPLICAS = (1, 2, 3, 4)
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 3)),
        st.tuples(st.just("fetch"), st.sampled_from(_REPLICAS[1:]), st.integers(0, 20)),
        st.tuples(st.just("ask"), st.sets(st.sampled_from(_REPLICAS[1:]))),
        st.tuples(st.just("accept")),
        st.tuples(st.just("refuse")),
        st.tuples(st.just("metadata"), st.sets(st.sampled_from(_REPLICAS[1:]))),
        st.tuples(st.just("time"), st.integers(1, 2 * MOST_LAG_MS)),
    ),
    max_size=60,
)


@given(isr=st.sets(st.sampled_from(_REPLICAS[1:])), steps=_STEPS)
@settings(max_examples=2 * settings().max_examples)
def test_replicated_records_are_on_every_member_of_the_maximal_isr(isr, steps):
    role = LeaderRole(
        partition_image(replicas=_REPLICAS, isr=(1, *sorted(isr))), start_offset=0, now_ms=0
    )
    end, now_ms, partition_epoch = 0, 0, 0
    reached = dict.fromkeys(_REPLICAS[1:], -1)
    for step, *arguments in steps:
        match step, arguments:
            case "append", [records]:
                end += records
            case "fetch", [replica, offset]:
                reached[replica] = min(max(offset, reached[replica]), end)
                role.followers[replica].fetched(
                    reached[replica],
                    log_start_offset=0,
                    leader_end_offset=end,
                    now_ms=now_ms,
                    broker_epoch=-1,
                )
            case "ask", [new_isr] if role.change is None:
                role.begin_isr_change({1, *new_isr})
            case "accept", [] if role.change is not None:
                partition_epoch += 1
                role.accept(role.change.isr, partition_epoch=partition_epoch)
            case "refuse", [] if role.change is not None:
                role.withdraw(role.change)
            case "metadata", [new_isr]:
                partition_epoch += 1
                image = partition_image(
                    replicas=_REPLICAS,
                    isr=(1, *sorted(new_isr)),
                    partition_epoch=partition_epoch,
                )
                assert role.follow(image, now_ms=now_ms)
            case "time", [passed]:
                now_ms += passed
        role.check()
        replicated = role.replicated_offset(
            end, now_ms=now_ms, most_lag_ms=MOST_LAG_MS, may_join=lambda *_: True
        )
        assert replicated <= min(
            (reached[replica_id] for replica_id in role.maximal_isr[1:]), default=end
        )
        assert set(role.lagging(end, now_ms=now_ms, most_lag_ms=MOST_LAG_MS)) <= set(role.isr)
