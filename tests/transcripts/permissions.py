"""The permissions of a second client, `guest`: `admin`, `allow`, `deny` and `revoke`.

    admin                           allow the first client everything, all others nothing
    allow OPERATION RESOURCE NAME   allow the guest an operation; `deny` denies it
    revoke                          remove the guest's permissions

Both clients are ANONYMOUS; ACLs distinguish their addresses. Each command waits until the broker
has applied the change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.codecs.acls import (
    ALL_OPERATIONS,
    ALLOW,
    ANY,
    CLUSTER_NAME,
    DENY,
    EVERYBODY,
    LITERAL,
    Operation,
    Resource,
)
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Callable

GUEST: Final = "guest"
GUEST_HOST: Final = "127.0.0.2"
_ADMIN_HOST: Final = "127.0.0.1"
_VERSION: Final = 3


class Permissions:
    def __init__(
        self, ask: Callable[[ApiKey, int, dict[str, Any]], Any], poll: Callable[[Any], None]
    ) -> None:
        self._ask = ask
        self._poll = poll

    def admin(self) -> None:
        self._create(
            [self._entry(resource, "*", _ADMIN_HOST, ALL_OPERATIONS) for resource in Resource]
        )

    def add(self, operation: str, resource: str, name: str, *, is_allowed: bool) -> None:
        acl_operation = ALL_OPERATIONS if operation == "ALL" else Operation[operation]
        entry = self._entry(Resource[resource], name, GUEST_HOST, acl_operation)
        self._create([{**entry, "permission_type": ALLOW if is_allowed else DENY}])

    def revoke(self) -> None:
        acl_filter = {**_EVERYTHING, "host_filter": GUEST_HOST}
        self._ask(ApiKey.DELETE_ACLS, _VERSION, {"filters": [acl_filter]})
        self._poll(lambda: self._count(GUEST_HOST) == 0)

    @staticmethod
    def _entry(resource: Resource, name: str, host: str, operation: int) -> dict[str, Any]:
        return {
            "resource_type": resource,
            "resource_name": CLUSTER_NAME if resource is Resource.CLUSTER else name,
            "resource_pattern_type": LITERAL,
            "principal": EVERYBODY,
            "host": host,
            "operation": operation,
            "permission_type": ALLOW,
        }

    def _create(self, entries: list[dict[str, Any]]) -> None:
        host = entries[0]["host"]
        expected = self._count(host) + len(entries)
        answer = self._ask(ApiKey.CREATE_ACLS, _VERSION, {"creations": entries})
        assert not any(result.error_code for result in answer.results), answer
        self._poll(lambda: self._count(host) == expected)

    def _count(self, host: str) -> int:
        acl_filter = {**_EVERYTHING, "host_filter": host}
        answer = self._ask(ApiKey.DESCRIBE_ACLS, _VERSION, acl_filter)
        assert not answer.error_code, answer
        return sum(len(resource.acls) for resource in answer.resources)


_EVERYTHING: Final = {
    "resource_type_filter": ANY,
    "resource_name_filter": None,
    "pattern_type_filter": ANY,
    "principal_filter": None,
    "operation": ANY,
    "permission_type": ANY,
}
