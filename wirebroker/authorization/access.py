"""Who may do what, as handlers ask it: by their request, with what was decided kept per session.

    authorization     one per process: the authorizer, and a version that any new ACL raises
      access          one per client: what was decided about it under that version
        asking        one per request: what handlers and rules are given

A decision that is kept costs a look into a dictionary. A client that asks about very many names
has its decisions forgotten, and made again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.authorization import audit
from wirebroker.authorization.authorizer import Action, Client, Decision, StandardAuthorizer
from wirebroker.base.addresses import host_of
from wirebroker.codecs.acls import CLUSTER_NAME, Operation, Resource

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.authorization.authorizer import Authorizer
    from wirebroker.codecs.api_keys import ApiKey
    from wirebroker.codecs.envelope import Principal
    from wirebroker.request.needs import Need
    from wirebroker.request.request import Request

# Of one client; 200 bytes each, and up to so long a name, which is what a peer sends.
_MOST_DECISIONS: Final = 2_000
# Of one request, which may name half a million resources, that is told of in the audit log.
_MOST_DENIALS_TOLD: Final = 100
_LONGEST_KEPT_NAME: Final = 249
# Kafka's AclEntry.supportedOperations.
_OPERATIONS: Final[dict[Resource, tuple[Operation, ...]]] = {
    Resource.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DESCRIBE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    Resource.GROUP: (
        Operation.READ,
        Operation.DESCRIBE,
        Operation.DELETE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    Resource.CLUSTER: (
        Operation.CREATE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
        Operation.ALTER,
        Operation.DESCRIBE,
    ),
}


class Authorization:
    """The authorizer in force.

    Attributes:
        version: Raised whenever a decision may be another.
    """

    __slots__ = ("_authorizer", "_keeps", "_standard", "_told", "version")

    def __init__(self, authorizer: Authorizer, standard: StandardAuthorizer) -> None:
        """Take what decides, and the standard one, which knows the ACLs."""
        self.version = 1
        self._authorizer = authorizer
        self._standard = standard
        self._keeps = bool(getattr(authorizer, "keeps_decisions", True))
        self._told: list[Callable[[], None]] = []

    def tell_changes(self, told: Callable[[], None]) -> None:
        """Have somebody told, at once, that decisions may be others from now on."""
        self._told.append(told)

    def changed(self) -> None:
        """Take note that a decision may be another."""
        self.version += 1
        for told in self._told:
            told()

    @property
    def keeps_decisions(self) -> bool:
        """Whether a decision holds until the version is another, and nobody is told of it."""
        return self._keeps and not audit.tells_allowed()

    def asking_of(self, request: Request) -> Asking:
        """Return what a request is asked about with."""
        session = request.session
        access = session.access
        if not isinstance(access, ClientAccess) or access.principal != session.principal:
            access = ClientAccess(self, session.principal, host_of(session.peer))
            session.access = access
        return Asking(access, request.key)

    def asking_for(self, principal: Principal, host: str, key: ApiKey) -> Asking:
        """Return what a request is asked about with that came for somebody else."""
        return Asking(ClientAccess(self, principal, host), key)

    def decide(self, client: Client, action: Action) -> Decision:
        """Decide, and say why."""
        if self._authorizer is self._standard:
            return self._standard.decide(client, action)
        allowed = bool(self._authorizer.authorize(client, action))
        return Decision(allowed, type(self._authorizer).__qualname__)

    def allows_some(self, client: Client, need: Need) -> bool:
        """Tell whether a client may do something to some resource of a kind."""
        if self._authorizer is self._standard:
            return self._standard.allows_some(client, need.operation, need.resource)
        some = getattr(self._authorizer, "allows_some", None)
        return some is not None and bool(some(client, need.operation, need.resource))


class ClientAccess:
    """One client's."""

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
        self._decisions: dict[Need, dict[str, bool]] = {}
        self._count = 0  # of decisions, whatever they are about
        self._some: dict[Need, bool] = {}  # of kinds of resources; needs are few

    def may(self, need: Need, name: str, key: ApiKey, *, logs_denied: bool) -> bool:
        """Tell whether the client may do something to one resource."""
        self._refresh()
        kept = self._decisions.get(need)
        if kept is not None and name in kept:
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
        """Return the bits of the operations that the client may do (KIP-430)."""
        return sum(
            1 << operation
            for operation in _OPERATIONS[resource]
            if self._authorization.decide(self.client, Action(operation, resource, name)).is_allowed
        )

    def may_some(self, need: Need) -> bool:
        """Tell whether the client may do something to some resource of a kind."""
        self._refresh()
        kept = self._some.get(need)
        if kept is not None:
            return kept
        some = self._authorization.allows_some(self.client, need)
        if self._authorization.keeps_decisions:
            self._some[need] = some
        return some

    def _refresh(self) -> None:
        """Forget what was decided by other rules."""
        if self._version != self._authorization.version:
            self._forget()
            self._some = {}
            self._version = self._authorization.version

    def _keep(self, need: Need, name: str) -> None:
        if self._count >= _MOST_DECISIONS:
            self._forget()
        self._decisions.setdefault(need, {})[name] = True
        self._count += 1

    def _forget(self) -> None:
        self._decisions = {}
        self._count = 0


class Asking:
    """One request's."""

    __slots__ = ("_access", "_denials_told", "_key")

    def __init__(self, access: ClientAccess, key: ApiKey) -> None:
        self._access = access
        self._key = key
        self._denials_told = 0

    @property
    def principal(self) -> Principal:
        """Who asks."""
        return self._access.principal

    @property
    def key(self) -> ApiKey:
        """What is asked."""
        return self._key

    def as_nobody(self) -> Asking:
        """Return what is asked where nothing is allowed any more, and that is told already."""
        return _Nobody(self._access, self._key)

    def may(self, need: Need, name: str = CLUSTER_NAME, *, logs_denied: bool = True) -> bool:
        """Tell whether the client may do something to one resource.

        Args:
            need: What.
            name: The resource's.
            logs_denied: Whether a denial is told in the audit log: of one request the first ones.
        """
        logs_denied = logs_denied and self._denials_told < _MOST_DENIALS_TOLD
        if self._access.may(need, name, self._key, logs_denied=logs_denied):
            return True
        if logs_denied:
            self._denials_told += 1
            if self._denials_told == _MOST_DENIALS_TOLD:
                audit.tell_no_more(self._access.client, self._key)
        return False

    def may_some(self, need: Need) -> bool:
        """Tell whether the client may do something to some resource of a kind."""
        return self._access.may_some(need)

    def operations(self, resource: Resource, name: str = CLUSTER_NAME) -> int:
        """Return the bits of the operations that the client may do (KIP-430)."""
        return self._access.operations(resource, name)


class _Nobody(Asking):
    """One that is allowed nothing."""

    __slots__ = ()

    def may(self, need: Need, name: str = CLUSTER_NAME, *, logs_denied: bool = True) -> bool:
        del need, name, logs_denied
        return False
