"""A large topology: parsed, encoded and configured before the heartbeat that needs it.

An operation cannot pause. So a thread does this work (`prepare`), with immutable values only. The
operation uses a result if its inputs are still those of the group, else it does the work itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.codecs.errors import KafkaError, without_frames
from wirebroker.coordinator.groups.streams.streams_group import StreamsGroup
from wirebroker.coordinator.groups.streams.streams_records import topology_record
from wirebroker.coordinator.groups.topologies.configured_topology import configure
from wirebroker.coordinator.groups.topologies.topology import topology_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.codecs.coordinator_records import CoordinatorRecord
    from wirebroker.coordinator.controller.image.cluster_image import TopicImage
    from wirebroker.coordinator.groups.serving_shard import ServingShard
    from wirebroker.coordinator.groups.streams.streams_request import StreamsHeartbeat
    from wirebroker.coordinator.groups.topic_hashes import TopicHashes
    from wirebroker.coordinator.groups.topologies.configured_topology import ConfiguredTopology
    from wirebroker.coordinator.groups.topologies.topology import StreamsTopology

# Up to this number of topics, subtopologies and copartition groups, the operation itself configures
# a topology: 2 ms.
_FEW: Final = 200


class TopologyInputs(NamedTuple):
    """The inputs from which a heartbeat computes its topology.

    Attributes:
        requested: The topology of the request.
        present: The topology of the group.
        topics: The cluster's topics by name; None: the topology has been configured with them.
        hashes: The hashes of these topics, which notice changes.
        version: The version of these topics there.
    """

    group_id: str
    requested: Any | None
    present: StreamsTopology | None
    topics: Mapping[str, TopicImage] | None
    hashes: TopicHashes
    version: int


class PreparedTopology(NamedTuple):
    """A topology that was prepared.

    Attributes:
        parsed: The topology of the request; None: it has none, or the operation has to parse it.
        record: Its record, if the group has none yet.
        topology: The topology that was configured.
        configured: The result, or the error of configuring it.
    """

    inputs: TopologyInputs
    parsed: StreamsTopology | None = None
    record: CoordinatorRecord | None = None
    topology: StreamsTopology | None = None
    configured: ConfiguredTopology | KafkaError | None = None

    def is_from(self, inputs: TopologyInputs, hashes: TopicHashes) -> bool:
        """Return whether this is the result of the present inputs."""
        if self.inputs.present is not inputs.present:
            return False
        if inputs.topics is None:
            return True
        if self.topology is None:
            # If there were topics, the request's topology cannot be parsed.
            return self.inputs.topics is not None
        return self._is_current(hashes)

    def _is_current(self, hashes: TopicHashes) -> bool:
        assert self.topology is not None, "it was configured"
        # A shard that was loaded again has other versions.
        return hashes is self.inputs.hashes and not hashes.has_changed_since(
            self.inputs.version, self.topology.required_topics
        )

    def configured_now(
        self, topology: StreamsTopology, hashes: TopicHashes
    ) -> ConfiguredTopology | None:
        """Return a topology with the cluster's present topics; None if it was not prepared.

        Raises:
            KafkaError: As configure does.
        """
        if self.topology is not topology or not self._is_current(hashes):
            return None
        configured = self.configured
        if isinstance(configured, KafkaError):
            # A copy, since its frames would keep this object alive.
            raise KafkaError(configured.code, configured.message)
        return configured


def inputs_of(shard: ServingShard, request: StreamsHeartbeat) -> TopologyInputs | None:
    """Return the present inputs of a heartbeat; None if the operation itself does the work."""
    body = request.body
    group = shard.groups.get(body.group_id)
    present = group.topology if isinstance(group, StreamsGroup) else None
    requested = body.topology if request.is_long else None
    if requested is None and (present is None or body.member_epoch < 0 or not _is_large(present)):
        return None
    topics = None
    if present is None or (isinstance(group, StreamsGroup) and _is_outdated(shard, group)):
        topics = shard.image.topics
    if requested is None and topics is None:
        return None
    hashes = shard.topic_hashes
    return TopologyInputs(body.group_id, requested, present, topics, hashes, hashes.version)


def _is_large(topology: StreamsTopology) -> bool:
    subtopologies = topology.subtopologies.values()
    count = len(topology.required_topics) + len(subtopologies)
    return (
        count > _FEW or count + sum(len(each.copartition_groups) for each in subtopologies) > _FEW
    )


def _is_outdated(shard: ServingShard, group: StreamsGroup) -> bool:
    """Return whether the next heartbeat configures the topology of a group."""
    if group.configured is None:
        return True
    if group.checked_topics is shard.image.topics:
        return False
    assert group.topology is not None, "it is configured"
    return shard.topic_hashes.of_group(group.topology.required_topics) != group.metadata_hash


def prepare(inputs: TopologyInputs) -> PreparedTopology:
    """Parse, encode and configure a topology, as far as the inputs need it."""
    prepared = PreparedTopology(inputs)
    topology = inputs.present
    if inputs.requested is not None:
        try:
            parsed = topology_of(inputs.requested)
        except KafkaError:
            # The operation parses it again, and reports the error in its own order.
            return prepared
        record = None if topology is not None else topology_record(inputs.group_id, parsed)
        prepared = prepared._replace(parsed=parsed, record=record)
        topology = topology or parsed
    if topology is None or inputs.topics is None:
        return prepared
    configured: ConfiguredTopology | KafkaError
    try:
        configured = configure(topology, inputs.topics)
    except KafkaError as error:
        configured = without_frames(error)
    return prepared._replace(topology=topology, configured=configured)
