"""Each permission of each API was compared with Apache Kafka: without it, allowed and denied."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests.transcripts.driver import api_key_of
from tests.transcripts.permissions import GUEST
from tests.transcripts.script import parse
from wirebroker.api.modules import load_handlers
from wirebroker.api.registry import REGISTRY
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
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
# Unauthenticated clients, such as the guest, are refused before the ACLs are checked:
# compat_tests/security/tokens/test_delegation_tokens.py compares authenticated ones.
OF_TOKENS: Final = frozenset({ApiKey.CREATE_DELEGATION_TOKEN, ApiKey.DESCRIBE_DELEGATION_TOKEN})
WITHOUT: Final = ("without",)

load_handlers()
HANDLERS: Final = [handler for handler in REGISTRY.handlers() if handler.permissions]


def tried() -> dict[ApiKey, set[tuple[str, ...]]]:
    """Return by key the guest's permissions during its requests."""
    permissions_by_key: dict[ApiKey, set[tuple[str, ...]]] = {}
    for file in FILES:
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


TRIED: Final = tried()


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
