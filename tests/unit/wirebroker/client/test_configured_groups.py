"""The groups with configs, also from brokers that do not list them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from wirebroker.client.configs.configs import configured_groups
from wirebroker.client.errors import ClientError, UnservedError
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

TOPIC, BROKER, METRICS, GROUP = 2, 4, 16, 32


class ScriptedClient:
    def __init__(self, *resources, error_code=0, is_served=True):
        self._resources = resources
        self._error_code = error_code
        self._is_served = is_served

    async def request(self, key, _body):
        assert key is ApiKey.LIST_CONFIG_RESOURCES
        if not self._is_served:
            raise UnservedError("the broker does not serve it")
        resources = [
            SimpleNamespace(resource_type=kind, resource_name=name)
            for kind, name in self._resources
        ]
        return SimpleNamespace(error_code=self._error_code, config_resources=resources)


@pytest.mark.parametrize(
    ("client", "groups"),
    [
        (ScriptedClient((GROUP, "b"), (TOPIC, "t"), (BROKER, "1"), (GROUP, "a")), ["a", "b"]),
        (ScriptedClient((BROKER, "1")), []),
        (ScriptedClient(), None),
        (ScriptedClient((METRICS, "m")), None),
        (ScriptedClient(is_served=False), None),
        (ScriptedClient(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED), None),
    ],
    ids=["some", "none", "version 0", "version 0 with metrics", "not served", "denied"],
)
async def test_groups_with_configs_are_listed_if_the_broker_can(client: Any, groups):
    assert await configured_groups(client) == groups


async def test_another_error_is_raised():
    client: Any = ScriptedClient(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
    with pytest.raises(ClientError):
        await configured_groups(client)
