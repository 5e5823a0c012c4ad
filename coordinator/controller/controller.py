"""The controller: operations for all requests that change the cluster's state.

    operation(request)  ->  function of the newest image and the time  ->  records and the response

Nothing here awaits, and only new ids are random. Only the brokers' sessions and the buckets of
quotas are soft state.

Source: Kafka's QuorumController, ControllerApis, AddVoterHandler, RemoveVoterHandler.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.permissions import ALTER_CLUSTER, DESCRIBE_CLUSTER
from wirebroker.codecs.primitives import random_uuid
from wirebroker.coordinator.controller.brokers import (  # noqa: F401 - they declare requests
    alter_partition,
    broker_heartbeat,
    broker_registration,
    directory_control,
    producer_ids,
)
from wirebroker.coordinator.controller.brokers.broker_registration import fence_broker
from wirebroker.coordinator.controller.brokers.broker_sessions import BrokerSessions
from wirebroker.coordinator.controller.configs import (  # noqa: F401 - likewise
    config_control,
    quota_control,
)
from wirebroker.coordinator.controller.features import feature_updates  # noqa: F401 - likewise
from wirebroker.coordinator.controller.partitions import (  # noqa: F401 - likewise
    leader_election,
    reassignment,
)
from wirebroker.coordinator.controller.requests.operations import (
    OPERATIONS,
    declare,
    has_no_time,
    refusal,
    refused_with_message,
)
from wirebroker.coordinator.controller.requests.request import Case, FixedLevel
from wirebroker.coordinator.controller.security import (  # noqa: F401 - likewise
    acl_control,
    scram_control,
    token_control,
)
from wirebroker.coordinator.controller.topics import (  # noqa: F401 - likewise
    topic_control,
    topic_deletion,
)
from wirebroker.coordinator.operation import ControllerResult, Operation
from wirebroker.coordinator.quotas.mutation_quota import MutationQuotas

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.config import Config
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.controller.requests.request import ControllerRequest, QuorumLevel
    from wirebroker.coordinator.outcome import Moment

__all__ = ["DECLARED_OPERATIONS", "Controller", "refusal"]

# Complete: the modules above and the end of this one declare their requests on import.
DECLARED_OPERATIONS: Final = OPERATIONS

Body = dict[str, Any]


class Controller:
    """The rules under this node's configuration.

    Attributes:
        config: Replaced as a whole when dynamic configs change.
        kraft: The level of kraft.version; set by the controller of a quorum.
    """

    __slots__ = (
        "cluster_id",
        "config",
        "kraft",
        "mutation_quotas",
        "new_uuid",
        "node_id",
        "sessions",
    )

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
        self.kraft: QuorumLevel = FixedLevel()

    def use_config(self, config: Config) -> None:
        """Use another configuration from the next request on."""
        self.config = config

    def operation(
        self, request: ControllerRequest
    ) -> Callable[[ClusterImage, Moment], Operation[Body]]:
        """Return a request's operation.

        The operation may raise KafkaError for the whole request: see `refusal`.
        """
        return partial(self._begin, request)

    def _begin(
        self, request: ControllerRequest, image: ClusterImage, now: Moment
    ) -> Operation[Body]:
        if has_no_time(request):
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)
        key, requester = request.key, request.requester
        owner = None if requester is None else requester.quota_owner
        charge = self.mutation_quotas.charge(
            key, request.version, owner, image.client_quotas, now.monotonic_ms
        )
        begin = OPERATIONS[key].begin
        assert begin is not None, f"{key.name} is not an operation"
        result = yield from begin(Case(request, image, now, charge, self))
        if charge.throttle_ms:
            result.response["throttle_time_ms"] = charge.throttle_ms
        return result

    def fence(
        self, node_id: int, broker_epoch: int, image: ClusterImage, now: Moment
    ) -> Operation[bool]:
        """Fence a broker, unless it was active meanwhile.

        The response tells whether it was fenced.
        """
        broker = image.brokers.get(node_id)
        is_same = broker is not None and broker.epoch == broker_epoch
        if not is_same or not self.sessions.is_silent(node_id, image, now.monotonic_ms):
            yield
            return ControllerResult(False)
        result = yield from fence_broker(image, self.config, node_id)
        return ControllerResult(True, result.records)


# Decided by the quorum's replicas (coordinator/raft), not by an operation on the image.
for _key, _permission in (
    (ApiKey.ADD_RAFT_VOTER, ALTER_CLUSTER),
    (ApiKey.REMOVE_RAFT_VOTER, ALTER_CLUSTER),
    (ApiKey.DESCRIBE_QUORUM, DESCRIBE_CLUSTER),
):
    declare(_key, None, permissions=(_permission,), refuse=refused_with_message)
