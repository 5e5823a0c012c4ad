"""DescribeConfigs: values, sources and synonyms of each kind of resource."""

import pytest

import wirebroker.api.configs.describe_configs  # noqa: F401 - registers the handler
from tests.support.coordinators.kit import topic
from tests.unit.wirebroker.api.api_kit import answer, make_broker
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.config import Config
from wirebroker.config.groups import GROUP_ROWS
from wirebroker.config.rows.row import ConfigSource, Mutability
from wirebroker.config.table import ROWS, ROWS_WITHOUT_EFFECT
from wirebroker.coordinator.controller.image.cluster_image import ResourceType, config_record

TOPIC, BROKER, LOGGER = ResourceType.TOPIC, ResourceType.BROKER, ResourceType.BROKER_LOGGER
METRICS, GROUP = ResourceType.CLIENT_METRICS, ResourceType.GROUP
CLASS = "org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor"


def broker_with_topic(**settings):
    return make_broker(
        *topic("a", 1),
        config_record(TOPIC, "a", "retention.ms", "7"),
        config_record(GROUP, "g", "consumer.session.timeout.ms", "46000"),
        **settings,
    )


def describe(
    *resources, version=4, broker=None, include_synonyms=False, include_documentation=False
):
    reply = answer(
        broker or broker_with_topic(),
        ApiKey.DESCRIBE_CONFIGS,
        version,
        resources=[
            {"resource_type": kind, "resource_name": name, "configuration_keys": keys}
            for kind, name, keys in resources
        ],
        include_synonyms=include_synonyms,
        **({"include_documentation": include_documentation} if version >= 3 else {}),
    )
    return reply.results


@pytest.mark.parametrize("version", range(1, 5))
def test_response_has_the_fields_of_its_version(version):
    [result] = describe((TOPIC, "a", ["retention.ms"]), version=version, include_synonyms=True)
    assert (result.error_code, result.resource_type, result.resource_name) == (0, TOPIC, "a")
    [config] = result.configs
    assert (config.name, config.value, config.read_only) == ("retention.ms", "7", False)
    assert config.config_source == 1
    assert config.synonyms[0].source == 1
    if version >= 3:
        assert config.config_type == 5
        assert config.documentation is None


def test_without_keys_everything_is_described():
    [nothing] = describe((TOPIC, "a", None))
    [empty] = describe((TOPIC, "a", []))
    assert len(nothing.configs) == len(empty.configs) > 30


def test_a_resource_that_is_named_repeatedly_is_described_once():
    first, second = (TOPIC, "a", ["retention.ms"]), (TOPIC, "a", ["segment.bytes", "retention.ms"])
    [both] = describe(first, second)
    assert [config.name for config in both.configs] == ["retention.ms", "segment.bytes"]
    [complete] = describe(first, (TOPIC, "a", None), second)
    assert len(complete.configs) > 30


def test_documentation_and_synonyms_are_returned_only_on_request():
    requested = (TOPIC, "a", ["segment.bytes"])
    [plain] = describe(requested)
    [rich] = describe(requested, include_synonyms=True, include_documentation=True)
    assert (plain.configs[0].synonyms, plain.configs[0].documentation) == ([], None)
    assert [synonym.name for synonym in rich.configs[0].synonyms] == ["log.segment.bytes"]
    assert rich.configs[0].documentation


def test_broker_configs_without_effect_are_described_with_kafkas_defaults():
    [result] = describe((BROKER, "1", None), include_documentation=True)
    configs = {config.name: config for config in result.configs}
    unset = [name for name, row in ROWS.items() if not row.internal]
    assert configs.keys() >= set(unset)
    for name, row in ROWS_WITHOUT_EFFECT.items():
        assert row.internal != (name in configs), name
    without_effect = {name: configs[name] for name in ROWS_WITHOUT_EFFECT.keys() & configs.keys()}
    assert len(without_effect) > 90
    # It can be set, but not by AlterConfigs.
    del without_effect["config.providers"]
    for name, config in without_effect.items():
        row = ROWS[name]
        assert config.documentation.startswith("Has no effect in wirebroker: "), name
        assert config.read_only == (row.mutability is Mutability.READ_ONLY), name
        default = "" if row.default is None else row.default
        assert (config.value or "", config.config_source, config.config_type) == (
            "" if row.is_sensitive else default,
            ConfigSource.DEFAULT_CONFIG,
            row.type.value,
        ), name


def test_a_config_without_effect_that_is_set_is_described_with_its_value():
    settings = {
        "queued.max.requests": "7",
        "sasl.oauthbearer.assertion.private.key.passphrase": "secret",
        "group.consumer.regex.refresh.interval.ms": "20000",
    }
    broker = make_broker()
    broker.config = Config(settings)
    [result] = describe((BROKER, "1", list(settings)), broker=broker)
    assert [(config.name, config.value, config.config_source) for config in result.configs] == [
        ("group.consumer.regex.refresh.interval.ms", "20000", ConfigSource.STATIC_BROKER_CONFIG),
        ("queued.max.requests", "7", ConfigSource.STATIC_BROKER_CONFIG),
        (
            "sasl.oauthbearer.assertion.private.key.passphrase",
            None,
            ConfigSource.STATIC_BROKER_CONFIG,
        ),
    ]


def test_broker_configs_are_described_with_their_source():
    broker = broker_with_topic(num_partitions="7")
    [result] = describe((BROKER, "1", ["num.partitions", "log.segment.bytes"]), broker=broker)
    configs = {config.name: (config.value, config.config_source) for config in result.configs}
    assert configs["num.partitions"] == ("7", 4)
    assert configs["log.segment.bytes"][1] == 5


def test_broker_with_empty_name_means_dynamic_defaults():
    [result] = describe((BROKER, "", None))
    assert (result.error_code, result.configs) == (0, [])


def test_configs_of_a_group_take_defaults_from_the_broker():
    broker = broker_with_topic()
    broker.config = Config({"group.streams.assignors": CLASS})
    names = ["consumer.session.timeout.ms", "streams.assignor.name", "share.isolation.level"]
    [result] = describe((GROUP, "g", names), broker=broker, include_synonyms=True)
    configs = {
        config.name: (
            config.value,
            config.config_source,
            [(s.name, s.value, s.source) for s in config.synonyms],
        )
        for config in result.configs
    }
    giver = "group.consumer.session.timeout.ms"
    own = "consumer.session.timeout.ms"
    assignors = "group.streams.assignors"
    level = "share.isolation.level"
    assert configs == {
        own: ("46000", 8, [(own, "46000", 8), (giver, "45000", 5)]),
        "streams.assignor.name": (
            CLASS,
            4,
            [(assignors, CLASS, 4), (assignors, "sticky", 5)],
        ),
        level: ("read_uncommitted", 5, [(level, "read_uncommitted", 5)]),
    }
    public = [name for name, row in GROUP_ROWS.items() if not row.internal]
    assert [config.name for config in describe((GROUP, "other", None))[0].configs] == sorted(public)


def test_client_metrics_show_defaults_without_synonyms():
    broker = broker_with_topic()
    [result] = describe((METRICS, "m", None), broker=broker, include_synonyms=True)
    assert [(config.name, config.value, config.synonyms) for config in result.configs] == [
        ("interval.ms", "300000", []),
        ("match", "", []),
        ("metrics", "", []),
    ]


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC, "nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TOPIC, "a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "2", ErrorCode.INVALID_REQUEST),
        (BROKER, "one", ErrorCode.INVALID_REQUEST),
        (LOGGER, "", ErrorCode.INVALID_REQUEST),
        (LOGGER, "2", ErrorCode.INVALID_REQUEST),
        (METRICS, "", ErrorCode.INVALID_REQUEST),
        (GROUP, "", ErrorCode.INVALID_REQUEST),
    ],
)
def test_missing_resource_is_refused_individually(kind, name, code):
    refused, fine = describe((kind, name, None), (TOPIC, "a", ["retention.ms"]))
    assert (refused.error_code, refused.configs) == (code, [])
    assert fine.error_code == 0


@pytest.mark.parametrize("kind", [0, 3])
def test_an_unknown_type_of_resource_refuses_the_whole_request(kind):
    results = describe((kind, "a", None), (TOPIC, "a", None))
    assert [result.error_code for result in results] == [ErrorCode.INVALID_REQUEST] * 2
