"""The controller: operations for all requests that change the cluster's state.

    operation(request)  ->  function of the newest image and the time  ->  records and the response

Nothing here awaits, and only new ids are random. Soft state are the brokers' sessions and what
remains of quotas; all else is in the image. Other modules have the rules:

    topic_control, topic_deletion   CreateTopics, CreatePartitions, DeleteTopics
    config_control                  AlterConfigs, IncrementalAlterConfigs
    broker_registration, _heartbeat, _sessions    registration, liveness and shutdown of brokers
    leader_election, partition_change             ElectLeaders, leaders after changes of brokers
    alter_partition                 ISR changes
    raft_voters                     AddRaftVoter, RemoveRaftVoter: refused
    directory_control               AssignReplicasToDirs, failed log directories
    reassignment                    Alter- and ListPartitionReassignments
    producer_ids                    blocks of producer ids
    feature_control, feature_updates              feature levels, the first records of a cluster
    scram_control, quota_control    AlterUserScramCredentials, AlterClientQuotas
    acl_control                     CreateAcls, DeleteAcls
    token_control                   Create-, Renew- and ExpireDelegationToken

Source: Kafka's QuorumController and ControllerApis.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.base.clock import Steps, collected
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.envelope import Principal
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.primitives import random_uuid, uuid_text
from wirebroker.coordinator.controller.brokers.alter_partition import alter_partitions
from wirebroker.coordinator.controller.brokers.broker_heartbeat import heartbeat
from wirebroker.coordinator.controller.brokers.broker_registration import (
    fence_broker,
    register_broker,
    unregister_broker,
    unregister_controller,
)
from wirebroker.coordinator.controller.brokers.broker_sessions import BrokerSessions
from wirebroker.coordinator.controller.brokers.directory_control import assign_replicas
from wirebroker.coordinator.controller.brokers.producer_ids import allocate_producer_ids
from wirebroker.coordinator.controller.configs.config_control import alter_configs, altered
from wirebroker.coordinator.controller.configs.quota_control import (
    alter_client_quotas,
    refused_quotas,
)
from wirebroker.coordinator.controller.features.feature_updates import (
    refused_updates,
    update_features,
)
from wirebroker.coordinator.controller.partitions.leader_election import elect_leaders
from wirebroker.coordinator.controller.partitions.reassignment import (
    alter_reassignments,
    list_reassignments,
)
from wirebroker.coordinator.controller.raft_voters import change_voters
from wirebroker.coordinator.controller.security.acl_control import (
    create_acls,
    delete_acls,
    refused_acls,
    refused_deletions_of_acls,
)
from wirebroker.coordinator.controller.security.scram_control import (
    alter_scram_users,
    refused_scram_users,
)
from wirebroker.coordinator.controller.security.token_control import (
    create_token,
    expire_token,
    refused_token,
    renew_token,
)
from wirebroker.coordinator.controller.topics.topic_control import create_partitions, create_topics
from wirebroker.coordinator.controller.topics.topic_deletion import delete_topics, refused_deletions
from wirebroker.coordinator.operation import ControllerResult, Operation
from wirebroker.coordinator.outcome import Moment  # noqa: TC001 - a tuple's field
from wirebroker.coordinator.quotas.mutation_quota import MutationCharge, MutationQuotas
from wirebroker.coordinator.quotas.shared_meters import Owner  # noqa: TC001 - a tuple's field

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from wirebroker.config import Config
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage

Body = dict[str, Any]


class ControllerRequest(NamedTuple):
    """A client's or broker's request for the controller."""

    key: ApiKey
    version: int
    body: Any  # decoded
    # The principal's name and the client id; None: a broker's own request.
    asker: Owner | None = None
    # The principal and the address; None: a broker's own request.
    client: tuple[Principal, str] | None = None
    # Whether the client sent it to a controller listener.
    is_direct: bool = False


class Controller:
    """The rules under this node's configuration.

    Attributes:
        config: Replaced as a whole when dynamic configs change.
        node_id: This node.
        cluster_id: The cluster.
        sessions: The brokers' sessions.
        mutation_quotas: The clients' quotas.
        new_uuid: Makes ids.
    """

    __slots__ = ("cluster_id", "config", "mutation_quotas", "new_uuid", "node_id", "sessions")

    def __init__(
        self,
        config: Config,
        *,
        node_id: int,
        cluster_id: str = "",
        new_uuid: Callable[[], bytes] = random_uuid,
    ) -> None:
        self.config = config
        self.node_id = node_id
        self.cluster_id = cluster_id
        session_ms = config.int("broker.session.timeout.ms")
        self.sessions = BrokerSessions(own_node_id=node_id, session_ms=session_ms)
        self.mutation_quotas = MutationQuotas(
            samples=config.int("controller.quota.window.num"),
            sample_s=config.int("controller.quota.window.size.seconds"),
        )
        self.new_uuid = new_uuid

    def use_config(self, config: Config) -> None:
        """Use another configuration from the next request on."""
        self.config = config

    def operation(
        self, request: ControllerRequest
    ) -> Callable[[ClusterImage, Moment], Operation[Body]]:
        """Return a request's operation, as a function of the newest image and the time.

        The operation may raise KafkaError for the whole request: see `refusal`.
        """
        return partial(self._begin, request)

    def _begin(
        self, request: ControllerRequest, image: ClusterImage, now: Moment
    ) -> Operation[Body]:
        key, version, body, asker, client, is_direct = request
        if _has_no_time(key, body):
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)
        quotas = image.client_quotas
        charge = self.mutation_quotas.charge(key, version, asker, quotas, now.monotonic_ms)
        principal = Principal() if client is None else client[0]
        case = _Case(self, key, version, body, image, now, charge, principal, is_direct=is_direct)
        result = yield from _OPERATIONS[key](case)
        if charge.throttle_ms:
            result.response["throttle_time_ms"] = charge.throttle_ms
        return result

    def fence(
        self, node_id: int, broker_epoch: int, image: ClusterImage, now: Moment
    ) -> Operation[bool]:
        """Fence a broker, unless it has sent a heartbeat or registered in the meantime.

        The response tells whether this fenced it.
        """
        broker = image.brokers.get(node_id)
        is_same = broker is not None and broker.epoch == broker_epoch
        if not is_same or not self.sessions.is_silent(node_id, image, now.monotonic_ms):
            yield
            return ControllerResult(False)
        result = yield from fence_broker(image, self.config, node_id)
        return ControllerResult(True, result.records)


# Subjects of requests with a deadline, which are refused after it.
_UNCHECKED_KEYS: Final[Mapping[ApiKey, tuple[str, ...]]] = {
    ApiKey.CREATE_TOPICS: ("topics",),
    ApiKey.DELETE_TOPICS: ("topic_names", "topics"),
    ApiKey.CREATE_PARTITIONS: ("topics",),
    ApiKey.ELECT_LEADERS: ("topic_partitions",),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: ("topics",),
    ApiKey.UPDATE_FEATURES: ("feature_updates",),
}


def _has_no_time(key: ApiKey, body: Any) -> bool:
    """Return whether a request is too late; one without subjects never is."""
    fields = _UNCHECKED_KEYS.get(key)
    if fields is None or body.timeout_ms > 0:
        return False
    # None means everything.
    return any(getattr(body, field) is None or getattr(body, field) for field in fields)


class _Case(NamedTuple):
    rules: Controller
    key: ApiKey
    version: int
    body: Any
    image: ClusterImage
    moment: Moment
    charge: MutationCharge
    principal: Principal  # ANONYMOUS for a broker's own request
    is_direct: bool

    @property
    def now_ms(self) -> int:
        return self.moment.monotonic_ms


def _as_field(field: str, operation: Operation[list[Body]]) -> Operation[Body]:
    result = yield from operation
    return ControllerResult({field: result.response}, result.records)


def _create_topics(case: _Case) -> Operation[Body]:
    ids = (case.rules.new_uuid() for _ in case.body.topics)
    created = create_topics(
        case.body, case.image, case.rules.config, topic_ids=ids, charge=case.charge
    )
    return _as_field("topics", created)


def _create_acls(case: _Case) -> Operation[Body]:
    rules = case.rules
    return create_acls(case.body, case.image, rules.config, new_uuid=rules.new_uuid)


def _alter_configs(case: _Case) -> Operation[Body]:
    altering = alter_configs(
        case.body,
        case.image,
        case.rules.config,
        node_id=case.rules.node_id,
        is_incremental=case.key is ApiKey.INCREMENTAL_ALTER_CONFIGS,
        is_direct=case.is_direct,
    )
    return _as_field("responses", altering)


def _register_broker(case: _Case) -> Operation[Body]:
    body, rules, image, now_ms = case.body, case.rules, case.image, case.now_ms
    before = image.brokers.get(body.broker_id)
    result = yield from register_broker(
        body,
        image,
        rules.config,
        cluster_id=rules.cluster_id,
        has_session=before is not None
        and rules.sessions.is_valid(before.node_id, before.epoch, now_ms),
    )
    rules.sessions.touch(body.broker_id, result.response["broker_epoch"], now_ms)
    return result


def _heartbeat(case: _Case) -> Operation[Body]:
    body, sessions, image = case.body, case.rules.sessions, case.image
    may_stop = sessions.may_stop(body.broker_id, image)
    result = yield from heartbeat(body, image, case.rules.config, may_stop=may_stop)
    offset = body.current_metadata_offset
    sessions.touch(body.broker_id, body.broker_epoch, case.now_ms, metadata_offset=offset)
    if body.want_shut_down and result.records:
        sessions.stopping(body.broker_id, image.offset + len(result.records) - 1)
    return result


def _create_token(case: _Case) -> Operation[Body]:
    return create_token(
        case.body,
        case.image,
        case.rules.config,
        asker=case.principal,
        now_ms=case.moment.wall_ms,
        token_id=uuid_text(case.rules.new_uuid()),
    )


def _change_token(case: _Case) -> Operation[Body]:
    change = renew_token if case.key is ApiKey.RENEW_DELEGATION_TOKEN else expire_token
    now_ms = case.moment.wall_ms
    return change(case.body, case.image, case.rules.config, asker=case.principal, now_ms=now_ms)


_OPERATIONS: dict[ApiKey, Callable[[_Case], Operation[Body]]] = {
    ApiKey.CREATE_TOPICS: _create_topics,
    ApiKey.DELETE_TOPICS: lambda case: delete_topics(
        case.body, case.image, case.rules.config, version=case.version, charge=case.charge
    ),
    ApiKey.ALTER_CONFIGS: _alter_configs,
    ApiKey.CREATE_PARTITIONS: lambda case: _as_field(
        "results", create_partitions(case.body, case.image, case.charge)
    ),
    ApiKey.ELECT_LEADERS: lambda case: _as_field(
        "replica_election_results", elect_leaders(case.body, case.image, case.rules.config)
    ),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _alter_configs,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: lambda case: alter_reassignments(
        case.body, case.image, case.rules.config
    ),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: lambda case: list_reassignments(case.body, case.image),
    ApiKey.ALTER_CLIENT_QUOTAS: lambda case: alter_client_quotas(case.body, case.image),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: lambda case: alter_scram_users(case.body, case.image),
    ApiKey.CREATE_ACLS: _create_acls,
    ApiKey.DELETE_ACLS: lambda case: delete_acls(case.body, case.image, case.rules.config),
    ApiKey.CREATE_DELEGATION_TOKEN: _create_token,
    ApiKey.RENEW_DELEGATION_TOKEN: _change_token,
    ApiKey.EXPIRE_DELEGATION_TOKEN: _change_token,
    ApiKey.ALTER_PARTITION: lambda case: alter_partitions(
        case.body, case.image, case.rules.config, version=case.version
    ),
    ApiKey.UPDATE_FEATURES: lambda case: update_features(
        case.body,
        case.image,
        case.rules.config,
        node_id=case.rules.node_id,
        version=case.version,
    ),
    ApiKey.BROKER_REGISTRATION: _register_broker,
    ApiKey.BROKER_HEARTBEAT: _heartbeat,
    # Its session ends by itself: whether the records will be written is unknown here.
    ApiKey.UNREGISTER_BROKER: lambda case: unregister_broker(
        case.body, case.image, case.rules.config
    ),
    ApiKey.UNREGISTER_CONTROLLER: lambda case: unregister_controller(
        case.body, case.image, active_id=case.rules.node_id
    ),
    ApiKey.ALLOCATE_PRODUCER_IDS: lambda case: allocate_producer_ids(case.body, case.image),
    ApiKey.ADD_RAFT_VOTER: lambda _: change_voters(),
    ApiKey.REMOVE_RAFT_VOTER: lambda _: change_voters(),
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: lambda case: assign_replicas(
        case.body, case.image, case.rules.config
    ),
}


SERVED_KEYS = frozenset(_OPERATIONS)


# Refusals by key: an error without its own field is repeated for each element.


def _refused(request: Any, error: KafkaError) -> Steps[Body]:
    del request
    yield
    return {"error_code": int(error.code)}


def _refused_with_message(request: Any, error: KafkaError) -> Steps[Body]:
    del request
    yield
    return _failure(error)


def _refused_topics(request: Any, error: KafkaError) -> Steps[Body]:
    refused = ({"name": topic.name, **_failure(error)} for topic in request.topics)
    return {"topics": (yield from collected(refused))}


def _refused_partitions(request: Any, error: KafkaError) -> Steps[Body]:
    refused = ({"name": topic.name, **_failure(error)} for topic in request.topics)
    return {"results": (yield from collected(refused))}


def _refused_configs(request: Any, error: KafkaError) -> Steps[Body]:
    refused = (altered(resource, error) for resource in request.resources)
    return {"responses": (yield from collected(refused))}


def _refused_token(request: Any, error: KafkaError) -> Steps[Body]:
    del request
    yield
    return refused_token(Principal(), Principal(), ErrorCode(error.code))


def _refused_elections(request: Any, error: KafkaError) -> Steps[Body]:
    results: list[Body] = []
    for topic in request.topic_partitions or ():
        refused = (
            {"partition_id": partition_id, **_failure(error)} for partition_id in topic.partitions
        )
        partitions = yield from collected(refused)
        results.append({"topic": topic.topic, "partition_result": partitions})
        yield
    return {"error_code": int(error.code), "replica_election_results": results}


def _refused_reassignments(request: Any, error: KafkaError) -> Steps[Body]:
    responses: list[Body] = []
    for topic in request.topics:
        refused = (
            {"partition_index": partition.partition_index, **_failure(error)}
            for partition in topic.partitions
        )
        partitions = yield from collected(refused)
        responses.append({"name": topic.name, "partitions": partitions})
        yield
    return {**_failure(error), "responses": responses}


def _failure(error: KafkaError) -> Body:
    return {"error_code": int(error.code), "error_message": error.message}


# ElectLeaders v0 has only errors of partitions.
_FIRST_ELECTION_ERROR: Final = 1

_REFUSALS: dict[ApiKey, Callable[[Any, KafkaError], Steps[Body]]] = {
    ApiKey.CREATE_TOPICS: _refused_topics,
    ApiKey.DELETE_TOPICS: refused_deletions,
    ApiKey.ALTER_CONFIGS: _refused_configs,
    ApiKey.CREATE_PARTITIONS: _refused_partitions,
    ApiKey.ELECT_LEADERS: _refused_elections,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _refused_configs,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _refused_reassignments,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: _refused_with_message,
    ApiKey.ALTER_CLIENT_QUOTAS: refused_quotas,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: refused_scram_users,
    ApiKey.CREATE_ACLS: refused_acls,
    ApiKey.DELETE_ACLS: refused_deletions_of_acls,
    ApiKey.CREATE_DELEGATION_TOKEN: _refused_token,
    ApiKey.DESCRIBE_QUORUM: _refused_with_message,
    ApiKey.UPDATE_FEATURES: refused_updates,
    ApiKey.UNREGISTER_BROKER: _refused_with_message,
    ApiKey.UNREGISTER_CONTROLLER: _refused_with_message,
    ApiKey.ADD_RAFT_VOTER: _refused_with_message,
    ApiKey.REMOVE_RAFT_VOTER: _refused_with_message,
}


def refusal(request: ControllerRequest, error: KafkaError) -> Steps[Body]:
    """Return the response to a request that fails as a whole, in steps."""
    answer = yield from _REFUSALS.get(request.key, _refused)(request.body, error)
    if request.key is ApiKey.ELECT_LEADERS and request.version < _FIRST_ELECTION_ERROR:
        del answer["error_code"]  # each partition has it
    return answer
