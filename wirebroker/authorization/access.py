"""Authorization as handlers use it, with decisions cached per client.

    Authorization      one per process: the authorizer, and a version that ACL changes raise
        ClientAccess       one per client: its decisions under that version
            RequestAccess      one per request: for handlers and rules

A full cache is cleared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.authorization import audit
from wirebroker.authorization.authorizer import Action, Client, Decision, StandardAuthorizer
from wirebroker.base.addresses import host_of
from wirebroker.codecs.acls import CLUSTER_NAME, SUPPORTED_OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.authorization.authorizer import Authorizer
    from wirebroker.codecs.acls import Resource
    from wirebroker.codecs.api_keys import ApiKey
    from wirebroker.codecs.envelope import Principal
    from wirebroker.codecs.permissions import Permission
    from wirebroker.request.request import Request

# Per client: 200 bytes each, plus the name that it chooses.
_MOST_DECISIONS: Final = 2_000
# Per request, which may name half a million resources.
_MAX_LOGGED_DENIALS: Final = 100
_LONGEST_KEPT_NAME: Final = 249


class Authorization:
    """The configured authorizer.

    Attributes:
        is_loaded: Whether the ACLs are those of the committed metadata. Before, a denial is not
            final; Kafka throws AuthorizerNotReadyException.
        version: Rises whenever decisions may change.
    """

    __slots__ = ("_authorizer", "_callbacks", "_keeps", "_standard", "is_loaded", "version")

    def __init__(self, authorizer: Authorizer, standard: StandardAuthorizer) -> None:
        self.is_loaded = True
        self.version = 1
        self._authorizer = authorizer
        self._standard = standard
        self._keeps = bool(getattr(authorizer, "keeps_decisions", True))
        self._callbacks: list[Callable[[], None]] = []

    def tell_changes(self, on_change: Callable[[], None]) -> None:
        """Register a callback that runs immediately when decisions may change."""
        self._callbacks.append(on_change)

    def changed(self) -> None:
        """Invalidate cached decisions and run the callbacks."""
        self.version += 1
        for on_change in self._callbacks:
            on_change()

    @property
    def keeps_decisions(self) -> bool:
        """Whether decisions may be cached; not if allowed ones are logged."""
        return self._keeps and not audit.logs_allowed()

    def access_of(self, request: Request) -> RequestAccess:
        """Return the access of a request."""
        session = request.session
        access = session.access
        if not isinstance(access, ClientAccess) or access.principal != session.principal:
            access = ClientAccess(self, session.principal, host_of(session.peer))
            session.access = access
        return RequestAccess(access, request.key)

    def access_for(self, principal: Principal, host: str, key: ApiKey) -> RequestAccess:
        """Return the access of a forwarded request."""
        return RequestAccess(ClientAccess(self, principal, host), key)

    def decide(self, client: Client, action: Action) -> Decision:
        """Return a decision with its reason."""
        if self._authorizer is self._standard:
            return self._standard.decide(client, action)
        allowed = bool(self._authorizer.authorize(client, action))
        return Decision(allowed, type(self._authorizer).__qualname__)

    def allows_some(self, client: Client, need: Permission) -> bool:
        """Return whether a client has a permission for some resource."""
        if self._authorizer is self._standard:
            return self._standard.allows_some(client, need.operation, need.resource)
        allows_some = getattr(self._authorizer, "allows_some", None)
        return allows_some is not None and bool(allows_some(client, need.operation, need.resource))


class ClientAccess:
    """The cached decisions of one client."""

    __slots__ = (
        "_authorization",
        "_count",
        "_decisions",
        "_some",
        "_version",
        "client",
        "principal",
    )

    def __init__(self, authorization: Authorization, principal: Principal, host: str) -> None:
        self._authorization = authorization
        self.principal = principal
        self.client = Client(f"{principal.type}:{principal.name}", host)
        self._version = 0
        self._decisions: dict[Permission, dict[str, bool]] = {}
        self._count = 0
        self._some: dict[Permission, bool] = {}

    @property
    def is_final(self) -> bool:
        """Whether a denial is final: the ACLs are loaded."""
        return self._authorization.is_loaded

    def may(self, need: Permission, name: str, key: ApiKey, *, logs_denied: bool) -> bool:
        """Return whether the client has a permission."""
        self._refresh()
        allowed_names = self._decisions.get(need)
        if allowed_names is not None and name in allowed_names:
            return True
        action = Action(need.operation, need.resource, name)
        decision = self._authorization.decide(self.client, action)
        if decision.is_allowed or logs_denied:
            audit.tell(self.client, action, key, decision)
        is_short = len(name) <= _LONGEST_KEPT_NAME
        if decision.is_allowed and is_short and self._authorization.keeps_decisions:
            self._keep(need, name)
        return decision.is_allowed

    def operations(self, resource: Resource, name: str) -> int:
        """Return the permitted operations as bits (KIP-430)."""
        return sum(
            1 << operation
            for operation in SUPPORTED_OPERATIONS[resource]
            if self._authorization.decide(self.client, Action(operation, resource, name)).is_allowed
        )

    def may_some(self, need: Permission) -> bool:
        """Return whether the client has the permission for some resource."""
        self._refresh()
        cached = self._some.get(need)
        if cached is not None:
            return cached
        is_allowed = self._authorization.allows_some(self.client, need)
        if self._authorization.keeps_decisions:
            self._some[need] = is_allowed
        return is_allowed

    def _refresh(self) -> None:
        if self._version != self._authorization.version:
            self._forget()
            self._some = {}
            self._version = self._authorization.version

    def _keep(self, need: Permission, name: str) -> None:
        if self._count >= _MOST_DECISIONS:
            self._forget()
        self._decisions.setdefault(need, {})[name] = True
        self._count += 1

    def _forget(self) -> None:
        self._decisions = {}
        self._count = 0


class RequestAccess:
    """Authorization of one request."""

    __slots__ = ("_access", "_denials_told", "_key")

    def __init__(self, access: ClientAccess, key: ApiKey) -> None:
        self._access = access
        self._key = key
        self._denials_told = 0

    @property
    def principal(self) -> Principal:
        """The client's principal."""
        return self._access.principal

    @property
    def key(self) -> ApiKey:
        """The request's API key."""
        return self._key

    @property
    def is_final(self) -> bool:
        """Whether a denial is final: the ACLs are loaded."""
        return self._access.is_final

    def without_user(self) -> RequestAccess:
        """Return an access that denies everything, without audit lines."""
        return _NoAccess(self._access, self._key)

    def may(self, need: Permission, name: str = CLUSTER_NAME, *, logs_denied: bool = True) -> bool:
        """Return whether the client has a permission.

        `logs_denied` writes a denial to the audit log, up to a limit per request.
        """
        logs_denied = logs_denied and self._denials_told < _MAX_LOGGED_DENIALS
        if self._access.may(need, name, self._key, logs_denied=logs_denied):
            return True
        if logs_denied:
            self._denials_told += 1
            if self._denials_told == _MAX_LOGGED_DENIALS:
                audit.log_limit_reached(self._access.client, self._key)
        return False

    def may_some(self, need: Permission) -> bool:
        """Return whether the client has the permission for some resource."""
        return self._access.may_some(need)

    def operations(self, resource: Resource, name: str = CLUSTER_NAME) -> int:
        """Return the permitted operations as bits."""
        return self._access.operations(resource, name)


class _NoAccess(RequestAccess):
    __slots__ = ()

    def may(self, need: Permission, name: str = CLUSTER_NAME, *, logs_denied: bool = True) -> bool:
        del need, name, logs_denied
        return False
