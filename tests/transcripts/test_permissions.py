"""Each permission of each API was compared with Apache Kafka: without it, allowed and denied.

Of the requests to controllers, those between nodes are compared on a controller's listener.
"""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests.transcripts.driver import api_key_of
from tests.transcripts.permissions import GUEST
from tests.transcripts.script import parse
from wirebroker.api import controller as controller_handlers
from wirebroker.api.controller.registry import CONTROLLER_REGISTRY
from wirebroker.api.modules import load_handlers
from wirebroker.api.registry import REGISTRY
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.permissions import CLUSTER_ACTION

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wirebroker.request.handlers import Handler

HERE: Final = Path(__file__).parent
FILES: Final = (
    "authorization.txt",
    "authorization_by_need.txt",
    "authorization_of_consumer_groups.txt",
    "authorization_of_streams_groups.txt",
    "authorization_of_share_fetches.txt",
    "authorization_of_share_groups.txt",
    "authorization_of_share_state.txt",
)
CONTROLLER_FILE: Final = "quorum/authorization.txt"
# Unauthenticated clients, such as the guest, are refused before the ACLs are checked:
# compat_tests/security/tokens/test_delegation_tokens.py compares authenticated ones.
OF_TOKENS: Final = frozenset({ApiKey.CREATE_DELEGATION_TOKEN, ApiKey.DESCRIBE_DELEGATION_TOKEN})
WITHOUT: Final = ("without",)

load_handlers()
for module in pkgutil.iter_modules(controller_handlers.__path__):
    importlib.import_module(f"{controller_handlers.__name__}.{module.name}")
HANDLERS: Final = [handler for handler in REGISTRY.handlers() if handler.permissions]


def tried(files: Iterable[str]) -> dict[ApiKey, set[tuple[str, ...]]]:
    """Return by key the guest's permissions during its requests."""
    permissions_by_key: dict[ApiKey, set[tuple[str, ...]]] = {}
    for file in files:
        permissions: list[tuple[str, ...]] = []
        for step in parse((HERE / file).read_text()):
            match step.command:
                case ("revoke",):
                    permissions = []
                case ("allow" | "deny" as verb, operation, resource, _):
                    permissions.append((verb, operation, resource))
                case ("send", api, _, "to", client) if client == GUEST:
                    permissions_by_key.setdefault(api_key_of(api), set()).update(
                        permissions or [WITHOUT]
                    )
                case _:
                    continue
    return permissions_by_key


TRIED: Final = tried(FILES)
TRIED_ON_CONTROLLERS: Final = tried([CONTROLLER_FILE])


@pytest.mark.parametrize("handler", HANDLERS, ids=[handler.key.name for handler in HANDLERS])
def test_each_permission_was_compared_with_apache_kafka(handler: Handler) -> None:
    if handler.key in OF_TOKENS:
        assert handler.key not in TRIED
        return
    expected = {
        (verb, need.operation.name, need.resource.name)
        for need in handler.permissions
        for verb in ("allow", "deny")
    }
    assert TRIED[handler.key] >= expected
    assert WITHOUT in TRIED[handler.key]


def test_every_compared_api_is_served() -> None:
    assert {handler.key for handler in HANDLERS} - OF_TOKENS == TRIED.keys()


def test_each_request_between_nodes_was_compared_on_a_controller() -> None:
    nodes_only = {
        handler.key
        for handler in CONTROLLER_REGISTRY.handlers()
        if CLUSTER_ACTION in handler.permissions
    }
    expected = {
        WITHOUT,
        ("allow", "CLUSTER_ACTION", "CLUSTER"),
        ("deny", "CLUSTER_ACTION", "CLUSTER"),
    }
    assert len(nodes_only) > 10
    assert all(TRIED_ON_CONTROLLERS[key] >= expected for key in nodes_only)
