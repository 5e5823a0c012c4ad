"""DeleteTopics: remove topics by name or id; each succeeds or fails separately.

Source: Kafka's ControllerApis.deleteTopics and ReplicationControlManager.deleteTopics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.base.clock import collected
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError, without_frames
from wirebroker.codecs.metadata_records import RecordType, metadata_record
from wirebroker.codecs.permissions import DELETE_TOPIC, DESCRIBE_TOPIC
from wirebroker.codecs.primitives import ZERO_UUID
from wirebroker.coordinator.controller.requests.operations import declare
from wirebroker.coordinator.operation import ControllerResult, RecordsOfRequest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wirebroker.base.clock import Steps
    from wirebroker.config import Config
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.controller.requests.request import ControllerRequest
    from wirebroker.coordinator.operation import Operation
    from wirebroker.coordinator.quotas.mutation_quota import MutationCharge

# First version with TOPIC_DELETION_DISABLED.
_FIRST_DISABLED_ERROR_VERSION = 3
# Topics between two yields.
_SLICE = 64

# A requested topic: its name, or None and its id.
_RequestedTopic = tuple[str | None, bytes]


def delete_topics(
    request: Any, image: ClusterImage, config: Config, *, version: int, charge: MutationCharge
) -> Operation[dict[str, Any]]:
    """Delete topics.

    Raises:
        KafkaError: TOPIC_DELETION_DISABLED (for old clients INVALID_REQUEST), POLICY_VIOLATION if
            there are too many.
    """
    if not config.bool("delete.topic.enable"):
        client_knows_error = version >= _FIRST_DISABLED_ERROR_VERSION
        raise KafkaError(
            ErrorCode.TOPIC_DELETION_DISABLED if client_knows_error else ErrorCode.INVALID_REQUEST
        )
    deletion = _Deletion(image)
    yield from deletion.sort((yield from collected(_requested_topics(request))))
    records = RecordsOfRequest()
    for count, (topic_id, name) in enumerate(deletion.found.items(), 1):
        error: KafkaError | None = None
        try:
            charge.take(len(image.topics_by_id[topic_id].partitions))
        except KafkaError as refusal:
            error = without_frames(refusal)
        else:
            records.add(metadata_record(RecordType.REMOVE_TOPIC, topic_id=topic_id))
        deletion.responses.append(_response(name, topic_id, error))
        if count % _SLICE == 0:
            yield
    yield
    return ControllerResult({"responses": deletion.responses}, records.records)


def _refused(request: ControllerRequest, error: KafkaError) -> Steps[dict[str, Any]]:
    refused = (
        _response(*requested_topic, error) for requested_topic in _requested_topics(request.body)
    )
    return {"responses": (yield from collected(refused))}


def _requested_topics(request: Any) -> Iterator[_RequestedTopic]:
    for name in request.topic_names:
        yield name, ZERO_UUID
    for topic in request.topics:
        yield topic.name, topic.topic_id


class _Deletion:
    __slots__ = ("_image", "_refused_ids", "found", "responses")

    def __init__(self, image: ClusterImage) -> None:
        self._image = image
        self._refused_ids: set[bytes] = set()
        self.found: dict[bytes, str] = {}  # id -> name
        self.responses: list[dict[str, Any]] = []

    def sort(self, requested_topics: list[_RequestedTopic]) -> Steps[None]:
        """Refuse duplicates, then look up ids, then names."""
        counts: dict[_RequestedTopic, int] = {}
        for requested_topic in requested_topics:
            if self._is_well_formed(*requested_topic):
                counts[requested_topic] = counts.get(requested_topic, 0) + 1
            yield
        for (name, topic_id), count in counts.items():
            if count > 1:
                if name is None:
                    self._refused_ids.add(topic_id)
                kind = "id" if name is None else "name"
                self._refuse(name, topic_id, f"Duplicate topic {kind}.")
            yield
        for (name, topic_id), count in counts.items():
            if count == 1 and name is None:
                self._find_id(topic_id)
            yield
        for (name, _), count in counts.items():
            if count == 1 and name is not None:
                self._find_name(name)
            yield

    def _is_well_formed(self, name: str | None, topic_id: bytes) -> bool:
        if name is None and topic_id == ZERO_UUID:
            self._refuse(None, ZERO_UUID, "A topic has neither name nor id.")
        elif name is not None and topic_id != ZERO_UUID:
            self._refuse(name, topic_id, "A topic has both name and id.")
        else:
            return True
        return False

    def _find_id(self, topic_id: bytes) -> None:
        topic = self._image.topics_by_id.get(topic_id)
        if topic is None:
            error = KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "There is no topic with this id.")
            self.responses.append(_response(None, topic_id, error))
        else:
            self.found[topic_id] = topic.name

    def _find_name(self, name: str) -> None:
        topic = self._image.topics.get(name)
        if topic is None:
            error = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "There is no such topic.")
            self.responses.append(_response(name, ZERO_UUID, error))
        elif topic.topic_id in self.found or topic.topic_id in self._refused_ids:
            self.found.pop(topic.topic_id, None)
            self._refused_ids.add(topic.topic_id)
            self._refuse(name, topic.topic_id, "The topic is also given by its id.")
        else:
            self.found[topic.topic_id] = name

    def _refuse(self, name: str | None, topic_id: bytes, message: str) -> None:
        error = KafkaError(ErrorCode.INVALID_REQUEST, message)
        self.responses.append(_response(name, topic_id, error))


def _response(name: str | None, topic_id: bytes, error: KafkaError | None) -> dict[str, Any]:
    return {
        "name": name,
        "topic_id": topic_id,
        "error_code": int(error.code) if error else 0,
        "error_message": error.message if error else None,
    }


declare(
    ApiKey.DELETE_TOPICS,
    lambda case: delete_topics(
        case.body, case.image, case.config, version=case.request.version, charge=case.charge
    ),
    permissions=(DESCRIBE_TOPIC, DELETE_TOPIC),
    refuse=_refused,
    subjects=("topic_names", "topics"),
)
