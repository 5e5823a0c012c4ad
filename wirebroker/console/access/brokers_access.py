"""The brokers' configs that decide where no ACL does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.authorization.authorizer import parse_super_users
from wirebroker.client.configs.configs import BROKER, configs_of
from wirebroker.client.errors import ClientError
from wirebroker.config.rows.authorizer import STANDARD
from wirebroker.config.rows.row import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.console.model.collector import Collector

_AUTHORIZER: Final = "authorizer.class.name"
_SUPER_USERS: Final = "super.users"
_DEFAULT: Final = "allow.everyone.if.no.acl.found"
_NAMES: Final = (_AUTHORIZER, _SUPER_USERS, _DEFAULT)


class BrokersAccess(NamedTuple):
    """How the brokers decide without ACLs; None if they do not show it.

    Attributes:
        is_standard: Whether the authorizer is Kafka's, which applies the ACLs.
        super_users: Principals that may do everything.
        allows_without_rules: Whether everyone may use a resource without ACLs.
    """

    is_standard: bool | None = None
    super_users: frozenset[str] | None = None
    allows_without_rules: bool | None = None


async def brokers_access(collector: Collector) -> BrokersAccess:
    """Return how a running broker decides; the console's user may not see everything.

    Raises:
        ClientError: The cluster does not respond.
    """

    async def read() -> BrokersAccess:
        client = collector.client
        broker_ids = await client.broker_ids()
        try:
            configs = await configs_of(client, BROKER, str(broker_ids[0]), names=_NAMES)
        except ClientError as error:
            if not error.code:
                raise
            return BrokersAccess()
        return of_configs({config.name: config.value for config in configs})

    return await collector.details.get("brokers' access", read)


def of_configs(values: Mapping[str, str | None]) -> BrokersAccess:
    """Return what configs say: brokers omit a config without a value, and hide secret ones."""
    authorizer = values.get(_AUTHORIZER)
    default = values.get(_DEFAULT, "false")
    return BrokersAccess(
        is_standard=None if authorizer is None else authorizer == STANDARD,
        super_users=_super_users(values.get(_SUPER_USERS, "")),
        allows_without_rules=None if default is None else default.lower() == "true",
    )


def _super_users(text: str | None) -> frozenset[str] | None:
    if text is None:
        return None
    try:
        return parse_super_users(text)
    except ConfigError:
        return None
