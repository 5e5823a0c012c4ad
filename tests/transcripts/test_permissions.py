"""Each permission of each API was compared with Apache Kafka: without it, allowed and denied.

Controllers have their own rules for some requests; these are compared on a controller's listener.
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
from wirebroker.coordinator.controller.controller import DECLARED_OPERATIONS

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
CONTROLLER_HANDLERS: Final = [
    handler
    for handler in CONTROLLER_REGISTRY.handlers()
    if handler.permissions and handler.key not in OF_TOKENS
]
# Requests that brokers and controllers check in the same function.
SHARED: Final = frozenset({ApiKey.DESCRIBE_CONFIGS})


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


def expected_of(handler: Handler) -> set[tuple[str, ...]]:
    permissions = {
        (verb, need.operation.name, need.resource.name)
        for need in handler.permissions
        for verb in ("allow", "deny")
    }
    return {WITHOUT, *permissions}


@pytest.mark.parametrize("handler", HANDLERS, ids=[handler.key.name for handler in HANDLERS])
def test_each_permission_was_compared_with_apache_kafka(handler: Handler) -> None:
    if handler.key in OF_TOKENS:
        assert handler.key not in TRIED
        return
    assert expected_of(handler) - TRIED[handler.key] == set()


def test_every_compared_api_is_served() -> None:
    assert {handler.key for handler in HANDLERS} - OF_TOKENS == TRIED.keys()


@pytest.mark.parametrize(
    "handler", CONTROLLER_HANDLERS, ids=[handler.key.name for handler in CONTROLLER_HANDLERS]
)
def test_each_permission_on_controllers_was_compared_with_apache_kafka(handler: Handler) -> None:
    is_forwarded = (
        handler.key in DECLARED_OPERATIONS and DECLARED_OPERATIONS[handler.key].is_forwarded
    )
    tried_permissions = set(TRIED_ON_CONTROLLERS.get(handler.key, ()))
    if is_forwarded or handler.key in SHARED:
        # Brokers have the same rules: they forward the request, or call the same function.
        tried_permissions |= TRIED[handler.key]
    assert expected_of(handler) - tried_permissions == set()
