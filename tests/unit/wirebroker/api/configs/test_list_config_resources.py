"""ListConfigResources: by type, all types, unknown types."""

import wirebroker.api.configs.list_config_resources  # noqa: F401 - registers the handler
from tests.support.coordinators.kit import broker, topic
from tests.unit.wirebroker.api.api_kit import answer, make_broker
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.controller.image.cluster_image import ResourceType, config_record


def listed(version, *types):
    node = make_broker(
        broker(2, fenced=True),
        *topic("t", 1),
        config_record(ResourceType.CLIENT_METRICS, "metrics", "interval.ms", "1000"),
        config_record(ResourceType.GROUP, "group", "consumer.session.timeout.ms", "50000"),
        config_record(ResourceType.BROKER, "", "log.retention.ms", "5000"),
    )
    body = {"resource_types": list(types)} if version else {}
    reply = answer(node, ApiKey.LIST_CONFIG_RESOURCES, version, **body)
    if reply.error_code:
        return reply.error_code
    return {(resource.resource_type, resource.resource_name) for resource in reply.config_resources}


def test_every_kind_is_listed_if_none_is_named():
    assert listed(1) == {(2, "t"), (4, "1"), (8, "1"), (16, "metrics"), (32, "group")}


def test_only_the_kinds_that_are_named_are_listed():
    assert listed(1, 2, 32) == {(2, "t"), (32, "group")}


def test_lowest_version_lists_client_metrics():
    assert listed(0) == {(16, "metrics")}


def test_an_unknown_kind_refuses_the_whole_request():
    assert listed(1, 2, 5) == ErrorCode.UNSUPPORTED_VERSION
