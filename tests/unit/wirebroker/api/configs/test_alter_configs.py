"""IncrementalAlterConfigs: from request to response, in every version."""

import pytest

import wirebroker.api.configs.alter_configs  # noqa: F401 - registers the handler
from tests.support.coordinators.kit import topic
from tests.unit.wirebroker.api.api_kit import answer, make_broker
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.controller.image.cluster_image import ResourceType


@pytest.mark.parametrize("version", [0, 1])
def test_configs_are_changed_in_every_version(version):
    broker = make_broker(*topic("a", 1))

    def resource(name, value):
        change = {"name": "retention.ms", "config_operation": 0, "value": value}
        return {"resource_type": 2, "resource_name": name, "configs": [change]}

    reply = answer(
        broker,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        version,
        resources=[resource("a", "7"), resource("b", "7")],
        validate_only=False,
    )
    assert [(response.resource_name, response.error_code) for response in reply.responses] == [
        ("a", 0),
        ("b", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert {response.resource_type for response in reply.responses} == {ResourceType.TOPIC}
    assert broker.metadata.image.topic_config("a") == {"retention.ms": "7"}
