"""ElectLeaders: eligible replicas, and when nothing has to be done."""

from types import SimpleNamespace

import pytest

from tests.support.coordinators.kit import (
    CONFIG,
    DIRECTORY,
    broker,
    image_of,
    one_broker,
    partition_of,
    run,
    topic,
)
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.controller.image.cluster_image import (
    NO_LEADER,
    ResourceType,
    config_record,
)
from wirebroker.coordinator.controller.partitions.leader_duties import elect_uncleanly, give_back
from wirebroker.coordinator.controller.partitions.leader_election import (
    PREFERRED,
    UNCLEAN,
    elect_leaders,
)
from wirebroker.coordinator.outcome import Moment

NOW = Moment(0, 0)


def elect(image, wishes, election_type=PREFERRED):
    topic_partitions = None
    if wishes is not None:
        topic_partitions = [
            SimpleNamespace(topic=name, partitions=indexes) for name, indexes in wishes.items()
        ]
    request = SimpleNamespace(election_type=election_type, topic_partitions=topic_partitions)
    results, after, records = run(elect_leaders(request, image, CONFIG), image)
    codes = {
        (result["topic"], partition["partition_id"]): partition["error_code"]
        for result in results
        for partition in result["partition_result"]
    }
    return codes, after, records


@pytest.mark.parametrize("election_type", [PREFERRED, UNCLEAN])
def test_a_partition_with_its_leader_needs_no_election(election_type):
    image = one_broker(*topic("led", 1, 2))
    codes, _, records = elect(image, {"led": [0, 1]}, election_type)
    assert set(codes.values()) == {ErrorCode.ELECTION_NOT_NEEDED}
    assert not records


def test_election_of_all_partitions_omits_those_not_needed():
    image = one_broker(*topic("led", 1), *topic("leaderless", 2, 1, leader=NO_LEADER))
    codes, after, records = elect(image, None)
    assert codes == {("leaderless", 0): 0}
    assert len(records) == 1
    assert partition_of(after, "leaderless").leader == 1


def test_the_last_replica_known_to_be_in_sync_may_take_over():
    image = one_broker(*topic("t", 1, 1, leader=NO_LEADER, isr=[], eligible_leader_replicas=[1]))
    codes, after, _ = elect(image, {"t": [0]}, UNCLEAN)
    assert codes == {("t", 0): 0}
    partition = partition_of(after, "t")
    assert (partition.leader, partition.isr, partition.leader_epoch) == (1, (1,), 1)


def behind():
    """Return a partition whose only live replica may have missed records."""
    return topic(
        "t",
        1,
        1,
        leader=NO_LEADER,
        isr=[2],
        replicas=[2, 1],
        directories=[bytes(16), bytes(16)],
    )


def test_a_replica_that_may_have_missed_records_does_not_take_over():
    codes, _, records = elect(one_broker(*behind()), {"t": [0]})
    assert codes == {("t", 0): ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}
    assert not records


def test_requested_unclean_election_takes_any_active_replica():
    codes, after, _ = elect(one_broker(*behind()), {"t": [0]}, UNCLEAN)
    assert codes == {("t", 0): 0}
    partition = partition_of(after, "t")
    assert (partition.leader, partition.isr, partition.leader_recovery_state) == (1, (1,), 1)


def test_without_an_active_replica_no_leader_is_elected():
    image = image_of(broker(fenced=True), *behind())
    codes, _, records = elect(image, {"t": [0]}, UNCLEAN)
    assert codes == {("t", 0): ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE}
    assert not records


def test_the_preferred_replica_takes_over_from_another_one():
    image = image_of(
        broker(1),
        broker(2, log_directories=(bytes(16),)),
        *topic("t", 1, replicas=[1, 2], isr=[2, 1], leader=2, directories=[DIRECTORY, bytes(16)]),
    )
    codes, after, _ = elect(image, {"t": [0]})
    assert codes == {("t", 0): 0}
    partition = partition_of(after, "t")
    assert (partition.leader, partition.leader_epoch, partition.isr) == (1, 1, (2, 1))


def test_missing_topic_or_partition_is_unknown():
    image = one_broker(*topic("t", 1))
    codes, _, _ = elect(image, {"t": [1], "none": [0]})
    assert set(codes.values()) == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_another_kind_of_election_refuses_the_whole_request():
    with pytest.raises(KafkaError) as caught:
        elect(one_broker(), {}, 2)
    assert caught.value.code is ErrorCode.INVALID_REQUEST


def two_brokers(**of_two):
    return [broker(1), broker(2, **of_two)]


@pytest.mark.parametrize(
    ("fields", "of_two", "moves"),
    [
        pytest.param({"isr": [1, 2]}, {}, True, id="in-sync"),
        pytest.param({"isr": [1]}, {}, False, id="not-in-sync"),
        pytest.param({"isr": [1, 2]}, {"fenced": True}, False, id="fenced"),
        pytest.param({"isr": [1, 2], "leader": 2}, {}, False, id="leads-already"),
    ],
)
def test_a_leadership_goes_back_to_the_preferred_replica(fields, of_two, moves):
    replicas = {"replicas": [2, 1], "leader": 1, "directories": [DIRECTORY] * 2}
    image = image_of(*two_brokers(**of_two), *topic("t", 1, 1, **(replicas | fields)))
    moved, after, records = run(give_back(CONFIG, image, NOW), image)
    assert moved == len(records) == moves
    if moves:
        assert partition_of(after, "t").leader == 2
        assert partition_of(after, "t").leader_epoch == 1


UNCLEAN_NAME = "unclean.leader.election.enable"


@pytest.mark.parametrize(
    ("kind", "of"),
    [(ResourceType.TOPIC, "t"), (ResourceType.BROKER, ""), (ResourceType.BROKER, "1")],
    ids=["topic", "cluster", "node"],
)
def test_unclean_election_happens_once_it_is_allowed(kind, of):
    image = one_broker(*behind())
    elected, _, records = run(elect_uncleanly(CONFIG, image, NOW), image)
    assert not elected
    assert not records
    image = image_of(config_record(kind, of, UNCLEAN_NAME, "true"), base=image)
    elected, after, _ = run(elect_uncleanly(CONFIG, image, NOW), image)
    assert elected == 1
    partition = partition_of(after, "t")
    assert (partition.leader, partition.isr, partition.leader_recovery_state) == (1, (1,), 1)
    assert run(elect_uncleanly(CONFIG, after, NOW), after)[0] == 0


def test_topic_config_overrides_cluster_unclean_election():
    image = image_of(
        config_record(ResourceType.BROKER, "", UNCLEAN_NAME, "true"),
        config_record(ResourceType.TOPIC, "t", UNCLEAN_NAME, "false"),
        base=one_broker(*behind()),
    )
    assert run(elect_uncleanly(CONFIG, image, NOW), image)[0] == 0


def test_no_unclean_election_while_all_replicas_are_offline():
    allowed = config_record(ResourceType.BROKER, "", UNCLEAN_NAME, "true")
    image = image_of(broker(fenced=True), *behind(), allowed)
    assert run(elect_uncleanly(CONFIG, image, NOW), image)[0] == 0


def test_at_most_a_thousand_leaderships_return_at_once():
    fields = {"replicas": [2, 1], "leader": 1, "isr": [1, 2], "directories": [DIRECTORY] * 2}
    image = image_of(*two_brokers(), *topic("t", 1, 1_100, **fields))
    moved, after, _ = run(give_back(CONFIG, image, NOW), image)
    assert moved == 1_000
    assert run(give_back(CONFIG, after, NOW), after)[0] == 100
