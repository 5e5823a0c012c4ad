"""IncrementalAlterConfigs: operations, and each refusal."""

from types import SimpleNamespace

import pytest

from tests.support.coordinators.kit import CONFIG, broker, one_broker, request, run, topic
from wirebroker.base.clock import in_one_go
from wirebroker.codecs.errors import ErrorCode
from wirebroker.config import Config
from wirebroker.coordinator.controller.configs.config_control import (
    alter_configs,
    locally_refused_configs,
)
from wirebroker.coordinator.controller.configs.config_edits import APPEND, DELETE, SET, SUBTRACT
from wirebroker.coordinator.controller.features.feature_control import feature_level
from wirebroker.coordinator.controller.image.cluster_image import ResourceType, config_record

TOPIC, BROKER, GROUP = ResourceType.TOPIC, ResourceType.BROKER, ResourceType.GROUP
METRICS = ResourceType.CLIENT_METRICS
SESSION, TAGS = "consumer.session.timeout.ms", "streams.rack.aware.assignment.tags"
BASE = one_broker(*topic("a", 1), config_record(TOPIC, "a", "retention.ms", "5000"))


def resource(kind, name, *changes):
    return SimpleNamespace(
        resource_type=kind,
        resource_name=name,
        configs=[
            SimpleNamespace(name=key, config_operation=operation, value=value)
            for key, operation, value in changes
        ],
    )


def alter(*resources, image=BASE, validate_only=False):
    body = request(resources=list(resources), validate_only=validate_only)
    return run(alter_configs(body, image, CONFIG, node_id=1), image)


def after(*changes):
    [result], image, _ = alter(resource(TOPIC, "a", *changes))
    assert result["error_code"] == 0, result
    return dict(image.topic_config("a"))


def test_set_and_delete():
    assert after(("retention.ms", SET, "7"), ("segment.ms", SET, "9")) == {
        "retention.ms": "7",
        "segment.ms": "9",
    }
    assert after(("retention.ms", DELETE, None)) == {}


def test_append_and_subtract_begin_with_the_default():
    assert after(("cleanup.policy", APPEND, "compact"))["cleanup.policy"] == "delete,compact"
    assert after(("cleanup.policy", APPEND, "delete,compact"))["cleanup.policy"] == "delete,compact"
    assert after(("cleanup.policy", SUBTRACT, "delete"))["cleanup.policy"] == ""


def test_an_unchanged_value_of_a_topic_writes_nothing():
    _, _, records = alter(
        resource(TOPIC, "a", ("retention.ms", SET, "5000"), ("segment.ms", DELETE, None))
    )
    assert records == []


def test_an_unknown_operation_fails_as_in_kafkas_controller():
    for asked in (
        resource(TOPIC, "a", ("retention.ms", 7, "1")),
        resource(GROUP, "g", (SESSION, 7, "1")),
    ):
        [result], _, records = alter(asked)
        assert result["error_code"] == ErrorCode.UNKNOWN_SERVER_ERROR
        assert records == []


def test_group_configs_are_stored_for_any_group():
    [result], image, records = alter(resource(GROUP, "g", (SESSION, SET, "50000")))
    assert result["error_code"] == 0
    assert records == [config_record(GROUP, "g", SESSION, "50000")]
    assert image.config(GROUP, "g") == {SESSION: "50000"}
    _, _, records = alter(resource(GROUP, "g", (SESSION, SET, "50000")), image=image)
    assert records == []
    _, image, _ = alter(resource(GROUP, "g", (SESSION, DELETE, None)), image=image)
    assert image.config(GROUP, "g") == {}


def test_an_invalid_stored_config_of_a_group_must_be_changed_first():
    """Limits may have changed since, and another release knows other configs."""
    image = one_broker(
        config_record(GROUP, "g", SESSION, "9"), config_record(GROUP, "g", "later", "1")
    )
    interval = ("consumer.assignment.interval.ms", SET, "5")
    [result], _, _ = alter(resource(GROUP, "g", interval), image=image)
    assert result["error_code"] == ErrorCode.INVALID_CONFIG
    deleted = (SESSION, DELETE, None), ("later", DELETE, None)
    [result], after, _ = alter(resource(GROUP, "g", interval, *deleted), image=image)
    assert result["error_code"] == 0
    assert after.config(GROUP, "g") == {interval[0]: "5"}


def test_client_metrics_are_changed_and_removed_with_their_last_config():
    changes = ("metrics", SET, "a,b"), ("match", SET, "client_id=c")
    [result], image, _ = alter(resource(METRICS, "m", *changes))
    assert result["error_code"] == 0
    assert image.config(METRICS, "m") == {"metrics": "a,b", "match": "client_id=c"}
    deletions = ("metrics", DELETE, None), ("match", DELETE, None)
    _, image, _ = alter(resource(METRICS, "m", *deletions), image=image)
    assert (METRICS, "m") not in image.configs


def test_validation_alone_changes_nothing():
    [result], _, records = alter(
        resource(TOPIC, "a", ("retention.ms", SET, "7")), validate_only=True
    )
    assert result["error_code"] == 0
    assert records == []


def test_a_resource_changes_as_a_whole_or_not_at_all():
    results, image, _ = alter(
        resource(TOPIC, "a", ("retention.ms", SET, "7"), ("segment.ms", SET, "soon")),
        resource(BROKER, "", ("message.max.bytes", SET, "2000")),
    )
    assert [result["error_code"] for result in results] == [ErrorCode.INVALID_CONFIG, 0]
    assert image.topic_config("a") == {"retention.ms": "5000"}
    assert image.config(BROKER, "") == {"message.max.bytes": "2000"}


def test_a_resource_that_comes_twice_is_refused_twice():
    results, _, records = alter(
        resource(TOPIC, "a", ("retention.ms", SET, "7")),
        resource(TOPIC, "a", ("segment.ms", SET, "7")),
    )
    assert [result["error_code"] for result in results] == [ErrorCode.INVALID_REQUEST] * 2
    assert records == []


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (resource(TOPIC, "a", ("retention.ms", SET, None)), ErrorCode.INVALID_REQUEST),
        (
            resource(TOPIC, "a", ("retention.ms", SET, "1"), ("retention.ms", DELETE, None)),
            ErrorCode.INVALID_REQUEST,
        ),
        (resource(BROKER, "1", ("message.max.bytes", 7, "1")), ErrorCode.INVALID_REQUEST),
        (resource(TOPIC, "a", ("retention.ms", APPEND, "1")), ErrorCode.INVALID_CONFIG),
        (resource(TOPIC, "a", ("nonsense", APPEND, "1")), ErrorCode.INVALID_CONFIG),
        (resource(TOPIC, "a", ("nonsense", SET, "1")), ErrorCode.INVALID_CONFIG),
        (resource(TOPIC, "a", ("cleanup.policy", SET, "shred")), ErrorCode.INVALID_CONFIG),
        (resource(TOPIC, "b", ("retention.ms", SET, "1")), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (resource(TOPIC, "b", ("retention.ms", SET, "soon")), ErrorCode.INVALID_CONFIG),
        (resource(TOPIC, "", ("retention.ms", SET, "1")), ErrorCode.INVALID_REQUEST),
        (resource(TOPIC, "a b", ("retention.ms", SET, "1")), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (resource(0, "a"), ErrorCode.INVALID_REQUEST),
        (resource(3, "a"), ErrorCode.INVALID_REQUEST),
        (resource(METRICS, ""), ErrorCode.INVALID_REQUEST),
        (resource(METRICS, "m", ("nonsense", SET, "1")), ErrorCode.INVALID_REQUEST),
        (resource(METRICS, "m", ("interval.ms", SET, "99")), ErrorCode.INVALID_REQUEST),
        (resource(METRICS, "m", ("match", SET, "nonsense")), ErrorCode.INVALID_CONFIG),
        (resource(METRICS, "m", ("metrics", APPEND, "a")), ErrorCode.INVALID_CONFIG),
        (resource(GROUP, ""), ErrorCode.INVALID_REQUEST),
        (resource(GROUP, "", (SESSION, SET, "50000")), ErrorCode.INVALID_REQUEST),
        (resource(GROUP, "g", (SESSION, SET, None)), ErrorCode.INVALID_REQUEST),
        (resource(GROUP, "g", ("nonsense", SET, "1")), ErrorCode.INVALID_CONFIG),
        (resource(GROUP, "g", (SESSION, SET, "60001")), ErrorCode.INVALID_CONFIG),
        (resource(GROUP, "g", (SESSION, APPEND, "1")), ErrorCode.INVALID_CONFIG),
        (resource(GROUP, "g", (TAGS, APPEND, "a")), ErrorCode.INVALID_CONFIG),
        (
            resource(BROKER, "2", ("message.max.bytes", SET, "2000")),
            ErrorCode.BROKER_ID_NOT_REGISTERED,
        ),
        (resource(BROKER, "one", ("message.max.bytes", SET, "2000")), ErrorCode.INVALID_REQUEST),
        (resource(BROKER, "1", ("log.dirs", SET, "x")), ErrorCode.INVALID_REQUEST),
        (resource(BROKER, "1", ("message.max.bytes", SET, "few")), ErrorCode.INVALID_REQUEST),
        (resource(BROKER, "1", ("message.max.bytes", APPEND, "2")), ErrorCode.INVALID_CONFIG),
    ],
)
def test_invalid_config_change_is_refused_with_kafkas_error_code(asked, code):
    [result], _, records = alter(asked)
    assert ErrorCode(result["error_code"]) is code
    assert result["error_message"]
    assert records == []


def test_an_unknown_operation_on_a_topic_is_answered_as_kafka_answers_it():
    [result], _, records = alter(resource(TOPIC, "a", ("retention.ms", 7, "1")))
    assert result["error_code"] == ErrorCode.UNKNOWN_SERVER_ERROR
    assert result["error_message"] is None
    assert records == []


def test_broker_configs_are_written_even_if_they_stay_the_same():
    _, image, _ = alter(resource(BROKER, "1", ("message.max.bytes", SET, "2000")))
    _, _, records = alter(resource(BROKER, "1", ("message.max.bytes", SET, "2000")), image=image)
    assert [record.body.value for record in records] == ["2000"]


def test_receiving_broker_refuses_configs_of_other_brokers():
    body = request(
        resources=[
            resource(BROKER, "2", ("message.max.bytes", SET, "2000")),
            resource(BROKER, "1", ("message.max.bytes", SET, "2000")),
            resource(BROKER, "", ("message.max.bytes", SET, "2000")),
            resource(TOPIC, "a", ("retention.ms", SET, "1")),
            resource(BROKER, "one", ("message.max.bytes", SET, "2000")),
        ]
    )
    refused = in_one_go(locally_refused_configs(body, one_broker(), CONFIG, node_id=1))
    assert list(refused) == [0, 4]
    assert {error.code for error in refused.values()} == {ErrorCode.INVALID_REQUEST}


def test_receiving_broker_validates_its_own_configs():
    config = Config({"num.io.threads": "2"})
    for threads, refused in (("4", []), ("5", [0])):
        body = request(resources=[resource(BROKER, "1", ("num.io.threads", SET, threads))])
        assert (
            list(in_one_go(locally_refused_configs(body, one_broker(), config, node_id=1)))
            == refused
        )
    body = request(resources=[resource(BROKER, "1", ("node.id", SET, "1"))])
    assert list(in_one_go(locally_refused_configs(body, one_broker(), config, node_id=1))) == [0]


def test_forwarded_configs_of_another_broker_are_changed():
    image = one_broker(broker(2, log_directories=(bytes(16),)))
    change = resource(BROKER, "2", ("message.max.bytes", SET, "2000"))
    [result], after, _ = alter(change, image=image)
    assert result["error_code"] == 0
    assert after.config(BROKER, "2") == {"message.max.bytes": "2000"}
    change = resource(BROKER, "2", ("log.dirs", SET, "x"))
    [result], _, _ = alter(change, image=image)
    assert result["error_code"] == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(("level", "error"), [(29, ErrorCode.INVALID_CONFIG), (30, ErrorCode.NONE)])
@pytest.mark.parametrize("change", [(SET, "data"), (DELETE, None)])
def test_cordoned_directories_are_for_clusters_that_know_of_them(level, error, change):
    image = one_broker(feature_level("metadata.version", level))
    [result], _, records = alter(resource(BROKER, "1", ("cordoned.log.dirs", *change)), image=image)
    assert result["error_code"] == error
    assert bool(records) == (error == ErrorCode.NONE)


@pytest.mark.parametrize(
    ("before", "change", "error"),
    [
        (None, (SET, "data"), ErrorCode.INVALID_CONFIG),
        (None, (SET, "*"), ErrorCode.INVALID_CONFIG),
        (None, (APPEND, "data"), ErrorCode.INVALID_CONFIG),
        (None, (SET, " "), ErrorCode.NONE),
        ("data", (SET, "data"), ErrorCode.NONE),
        ("data", (SUBTRACT, "data"), ErrorCode.NONE),
        ("data", (DELETE, None), ErrorCode.NONE),
        ("data", (SET, ""), ErrorCode.NONE),
    ],
)
def test_direct_controller_request_may_only_uncordon_directories(before, change, error):
    stored = [] if before is None else [config_record(BROKER, "1", "cordoned.log.dirs", before)]
    image = one_broker(feature_level("metadata.version", 30), *stored)
    config_change = resource(BROKER, "1", ("cordoned.log.dirs", *change))
    body = request(resources=[config_change], validate_only=False)
    config = Config({"log.dirs": "data"})
    [result], _, records = run(alter_configs(body, image, config, node_id=1, is_direct=True), image)
    assert result["error_code"] == error
    assert bool(records) == (error == ErrorCode.NONE)
    [forwarded], _, _ = run(alter_configs(body, image, config, node_id=1), image)
    assert forwarded["error_code"] == ErrorCode.NONE


PROVIDED = Config(
    {
        "log.dirs": "data",
        "config.providers": "env",
        "config.providers.env.class": (
            "org.apache.kafka.common.config.provider.EnvVarConfigProvider"
        ),
    }
)


@pytest.mark.parametrize("name", ["1", ""])
@pytest.mark.parametrize(("config", "is_refused"), [(PROVIDED, True), (CONFIG, False)])
def test_a_request_cannot_set_a_placeholder_of_a_config_provider(name, config, is_refused):
    change = resource(BROKER, name, ("metric.name", SET, "a ${env:HOME}"))
    body = request(resources=[change], validate_only=False)
    at_broker = in_one_go(locally_refused_configs(body, BASE, config, node_id=1))
    assert [error.code for error in at_broker.values()] == [ErrorCode.INVALID_REQUEST] * is_refused
    [result], _, records = run(alter_configs(body, BASE, config, node_id=1), BASE)
    assert bool(result["error_code"]) is is_refused
    assert bool(records) is not is_refused
    if is_refused:
        assert "metric.name=${env:HOME} cannot be set by a request" in result["error_message"]


@pytest.mark.parametrize("name", ["1", ""])
def test_a_request_cannot_complete_a_placeholder_by_appending(name):
    before = ("config.providers", "${env:A"), ("log.cleaner.threads", "1")
    image = one_broker(*(config_record(BROKER, name, *pair) for pair in before))
    change = resource(BROKER, name, ("config.providers", APPEND, "B}"))
    body = request(resources=[change], validate_only=False)
    [result], _, records = run(alter_configs(body, image, PROVIDED, node_id=1), image)
    assert (result["error_code"], records) == (ErrorCode.INVALID_REQUEST, [])
    assert "config.providers=${env:A,B} cannot be set" in result["error_message"]


@pytest.mark.parametrize("name", ["1", ""])
def test_a_placeholder_that_apache_kafka_stored_does_not_block_other_changes(name):
    image = one_broker(config_record(BROKER, name, "metric.name", "${env:HOME}"))
    change = resource(BROKER, name, ("log.cleaner.threads", SET, "2"))
    body = request(resources=[change], validate_only=False)
    [result], _, records = run(alter_configs(body, image, PROVIDED, node_id=1), image)
    assert (result["error_code"], len(records)) == (ErrorCode.NONE, 1)
