"""Topic creation, growth and deletion: results and records, and each refusal."""

from types import SimpleNamespace

import pytest

from tests.support.coordinators.kit import (
    CONFIG,
    DIRECTORY,
    broker,
    image_of,
    new_topic,
    one_broker,
    partition_of,
    request,
    run,
    topic,
)
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.controller.image.cluster_image import UNASSIGNED_DIRECTORY
from wirebroker.coordinator.controller.topics.topic_control import (
    create_partitions,
    create_topics,
)
from wirebroker.coordinator.operation import complete
from wirebroker.coordinator.quotas.mutation_quota import free_of_charge

IDS = [bytes([9]) * 15 + bytes([number]) for number in range(100)]


def create(image, *topics, validate_only=False):
    body = request(topics=list(topics), validate_only=validate_only)
    return run(create_topics(body, image, CONFIG, topic_ids=IDS, charge=free_of_charge()), image)


def refusal(image, *topics):
    [result], _, records = create(image, *topics)
    assert records == []
    assert result["error_message"]
    return ErrorCode(result["error_code"])


def test_a_topic_is_created_with_its_configs_and_a_leader_for_each_partition():
    results, image, records = create(
        one_broker(), new_topic("a", 2, configs={"retention.ms": "5000"})
    )
    [result] = results
    assert result["num_partitions"] == 2
    assert result["replication_factor"] == 1
    created = image.topics["a"]
    assert created.topic_id == result["topic_id"]
    assert [partition.leader for partition in created.partitions.values()] == [1, 1]
    assert created.partitions[0].directories == (DIRECTORY,)
    assert image.topic_config("a") == {"retention.ms": "5000"}
    assert [record.type.name for record in records] == ["TOPIC", "CONFIG", "PARTITION", "PARTITION"]


def test_the_answer_lists_all_configs_with_their_sources():
    [result], _, _ = create(one_broker(), new_topic("a", configs={"retention.ms": "5000"}))
    configs = {config["name"]: config for config in result["configs"]}
    assert len(configs) >= 33
    assert list(configs) == sorted(configs)
    assert (configs["retention.ms"]["value"], configs["retention.ms"]["config_source"]) == (
        "5000",
        1,
    )
    assert configs["segment.bytes"]["config_source"] == 5
    assert "internal.segment.bytes" not in configs


def test_the_answer_shows_a_config_as_it_was_written():
    [result], _, _ = create(one_broker(), new_topic("a", configs={"retention.ms": " 5000 "}))
    assert [
        config["value"] for config in result["configs"] if config["name"] == "retention.ms"
    ] == [" 5000 "]


def test_minus_one_takes_the_defaults_of_the_broker():
    [result], image, _ = create(one_broker(), new_topic("a", -1, -1))
    assert (result["num_partitions"], result["replication_factor"]) == (3, 1)
    assert len(image.topics["a"].partitions) == 3


def test_validation_alone_creates_nothing_and_answers_the_same():
    [result], image, records = create(one_broker(), new_topic("a", 2), validate_only=True)
    assert result["num_partitions"] == 2
    assert records == []
    assert not image.topics


def test_one_bad_topic_does_not_hold_up_the_others():
    results, image, _ = create(one_broker(), new_topic("a"), new_topic("b", 0), new_topic("c"))
    assert [result.get("error_code", 0) for result in results] == [
        0,
        ErrorCode.INVALID_PARTITIONS,
        0,
    ]
    assert set(image.topics) == {"a", "c"}


def test_a_name_that_comes_twice_is_refused_once_and_after_the_others():
    results, image, _ = create(one_broker(), new_topic("a"), new_topic("a"), new_topic("b"))
    assert [(result["name"], result.get("error_code", 0)) for result in results] == [
        ("b", 0),
        ("a", ErrorCode.INVALID_REQUEST),
    ]
    assert set(image.topics) == {"b"}


def test_the_metadata_topic_cannot_be_created():
    assert refusal(one_broker(), new_topic("__cluster_metadata")) is ErrorCode.INVALID_REQUEST


def test_existing_topic_is_refused_before_other_checks():
    image = one_broker(*topic("a.b", 1))
    assert refusal(image, new_topic("a.b", 0, 0)) is ErrorCode.TOPIC_ALREADY_EXISTS


def test_names_that_differ_in_dots_and_underscores_collide_with_existing_topics():
    image = one_broker(*topic("a.b", 1))
    assert refusal(image, new_topic("a_b")) is ErrorCode.INVALID_TOPIC_EXCEPTION


def test_two_new_names_that_collide_are_both_created_as_in_kafka():
    _, image, _ = create(one_broker(), new_topic("a.b"), new_topic("a_b"))
    assert set(image.topics) == {"a.b", "a_b"}


ASSIGNMENTS = [
    ([(0, [1]), (2, [1])], "gap"),
    ([(0, [1]), (0, [1])], "twice the same partition"),
    ([(0, [])], "no replicas"),
    ([(0, [1, 1])], "twice the same broker"),
    ([(0, [9])], "unknown broker"),
    ([(0, [2])], "fenced broker only"),
    ([(0, [1]), (1, [1, 2])], "other replication factor"),
]


@pytest.mark.parametrize(("assignments", "why"), ASSIGNMENTS)
def test_bad_manual_assignments_are_refused(assignments, why):
    image = image_of(broker(), broker(2, fenced=True))
    creation = new_topic("a", -1, -1, assignments=assignments)
    assert refusal(image, creation) is ErrorCode.INVALID_REPLICA_ASSIGNMENT, why


def test_a_manual_assignment_is_followed_in_the_order_of_the_partitions():
    image = image_of(broker(), broker(2), broker(3, fenced=True))
    _, image, _ = create(image, new_topic("a", -1, -1, assignments={1: [2, 1], 0: [3, 1]}))
    partitions = image.topics["a"].partitions
    assert [partition.replicas for partition in partitions.values()] == [(3, 1), (2, 1)]
    assert [partition.isr for partition in partitions.values()] == [(1,), (2, 1)]
    assert [partition.leader for partition in partitions.values()] == [1, 2]


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (new_topic("a", 1, -1, assignments={0: [1]}), ErrorCode.INVALID_REQUEST),
        (new_topic("a", -1, 1, assignments={0: [1]}), ErrorCode.INVALID_REQUEST),
        (new_topic("a", 1, 2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (new_topic("a", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (new_topic("a", 1, -2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (new_topic("a", 0, 1), ErrorCode.INVALID_PARTITIONS),
        (new_topic("a", -2, 1), ErrorCode.INVALID_PARTITIONS),
        (new_topic("a b"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (new_topic("a", configs={"nonsense": "1"}), ErrorCode.INVALID_CONFIG),
        (new_topic("a", configs={"retention.ms": "soon"}), ErrorCode.INVALID_CONFIG),
        (new_topic("a", configs={"retention.ms": None}), ErrorCode.INVALID_CONFIG),
        # Configs are checked before counts.
        (new_topic("a", 0, configs={"retention.ms": "soon"}), ErrorCode.INVALID_CONFIG),
        (
            new_topic("a", configs={"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "2"}),
            ErrorCode.INVALID_CONFIG,
        ),
    ],
)
def test_invalid_topic_is_refused_with_kafkas_error_code(asked, code):
    assert refusal(one_broker(), asked) is code


def test_without_an_active_broker_no_topic_is_created():
    image = image_of(broker(fenced=True))
    assert refusal(image, new_topic("a")) is ErrorCode.INVALID_REPLICATION_FACTOR


def test_leaders_are_striped_over_the_brokers_and_fenced_ones_come_last():
    image = image_of(broker(), broker(2), broker(3, fenced=True))
    _, image, _ = create(image, new_topic("a", 4, 3))
    partitions = image.topics["a"].partitions.values()
    assert sorted(partition.leader for partition in partitions) == [1, 1, 2, 2]
    assert {partition.replicas[2] for partition in partitions} == {3}
    assert all(set(partition.isr) == {1, 2} for partition in partitions)


def test_a_broker_with_several_directories_chooses_one_itself():
    image = image_of(broker(log_directories=(DIRECTORY, bytes([8]) * 16)))
    _, image, _ = create(image, new_topic("a"))
    assert partition_of(image, "a").directories == (UNASSIGNED_DIRECTORY,)


@pytest.mark.parametrize(
    "topics",
    [
        [new_topic("a", 10_001)],
        [new_topic("a", 10_000)],  # with the topic's own record it is one too many
        [new_topic("a", 5_000), new_topic("b", 5_001)],
    ],
)
def test_more_than_ten_thousand_records_are_refused_as_a_whole(topics):
    with pytest.raises(KafkaError) as raised:
        complete(
            create_topics(
                request(topics=topics), one_broker(), CONFIG, topic_ids=IDS, charge=free_of_charge()
            )
        )
    assert raised.value.code is ErrorCode.POLICY_VIOLATION


def test_a_large_creation_can_be_interrupted_often():
    steps = create_topics(
        request(topics=[new_topic("a", 9_999)]),
        one_broker(),
        CONFIG,
        topic_ids=IDS,
        charge=free_of_charge(),
    )
    assert sum(1 for _ in steps) > 100


def more(name, count, assignments=None):
    broker_lists = None
    if assignments is not None:
        broker_lists = [SimpleNamespace(broker_ids=ids) for ids in assignments]
    return SimpleNamespace(name=name, count=count, assignments=broker_lists)


def enlarge(image, *topics, validate_only=False):
    body = request(topics=list(topics), validate_only=validate_only)
    return run(create_partitions(body, image, free_of_charge()), image)


def test_partitions_are_added_behind_those_that_exist():
    base = one_broker(*topic("a", 1, partitions=2))
    [result], image, records = enlarge(base, more("a", 4))
    assert result == {"name": "a"}
    assert list(image.topics["a"].partitions) == [0, 1, 2, 3]
    assert [record.body.partition_id for record in records] == [2, 3]


def test_added_partitions_follow_a_manual_assignment():
    base = image_of(broker(), broker(2), *topic("a", 1))
    _, image, _ = enlarge(base, more("a", 3, [[2], [1]]))
    assert [partition.leader for partition in image.topics["a"].partitions.values()] == [1, 2, 1]


def test_validation_alone_adds_nothing():
    [result], image, records = enlarge(one_broker(*topic("a", 1)), more("a", 2), validate_only=True)
    assert result == {"name": "a"}
    assert records == []
    assert len(image.topics["a"].partitions) == 1


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (more("a", 2), ErrorCode.INVALID_PARTITIONS),
        (more("a", 1), ErrorCode.INVALID_PARTITIONS),
        (more("a", -1), ErrorCode.INVALID_PARTITIONS),
        (more("b", 3), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (more("a", 4, [[1]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (more("a", 3, []), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (more("a", 3, [[]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (more("a", 3, [[1, 1]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (more("a", 3, [[9]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (more("a", 10_003), ErrorCode.POLICY_VIOLATION),
        (more("a", 2**31 - 1), ErrorCode.POLICY_VIOLATION),
    ],
)
def test_partitions_that_cannot_be_added_are_refused_with_kafkas_code(asked, code):
    base = one_broker(*topic("a", 1, partitions=2))
    [result], _, records = enlarge(base, asked)
    assert result["error_code"] == code
    assert records == []


def test_a_topic_that_is_enlarged_twice_in_a_request_is_refused_before_the_others():
    base = one_broker(*topic("a", 1), *topic("b", 2))
    results, image, _ = enlarge(base, more("b", 2), more("a", 2), more("a", 3))
    assert [(result["name"], result.get("error_code", 0)) for result in results] == [
        ("a", ErrorCode.INVALID_REQUEST),
        ("b", 0),
    ]
    assert len(image.topics["a"].partitions) == 1
