"""DeleteTopics: topics removed by name or id.

v1 throttle time, v3 TOPIC_DELETION_DISABLED, v4 flexible, v5 error messages (KIP-599), v6 topics
by id (KIP-516).

Source: Kafka's ControllerApis.deleteTopics.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from wirebroker.api.registry import Request, handles
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.primitives import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wirebroker.broker import Broker
    from wirebroker.coordinator.cluster_image import ClusterImage

# From this version on a client knows TOPIC_DELETION_DISABLED.
_KNOWS_DISABLED = 3

# A topic as it was asked for: the name, or "" and an id.
_Wish = tuple[str | None, bytes]


@handles(ApiKey.DELETE_TOPICS)
async def delete_topics(broker: Broker, request: Request, body: Any) -> dict[str, Any]:
    """Delete topics; each succeeds or fails by itself."""
    wishes: list[_Wish] = [(name, ZERO_UUID) for name in body.topic_names]
    wishes += [(topic.name, topic.topic_id) for topic in body.topics]
    if not broker.config.bool("delete.topic.enable"):
        error = _disabled(request.version)
        return {"responses": [_response(*wish, error) for wish in wishes]}
    deletion = _Deletion(wishes, broker.metadata.image)
    try:
        errors = await broker.metadata.submit(broker.controller.delete_topics(list(deletion.found)))
    except KafkaError as error:
        return {"responses": [_response(*wish, error) for wish in wishes]}
    for (topic_id, name), failure in zip(deletion.found.items(), errors, strict=True):
        deletion.responses.append(_response(name, topic_id, failure))
    return {"responses": deletion.responses}


class _Deletion:
    """The wishes of one request, sorted into topics that can be deleted and refusals."""

    __slots__ = ("_image", "_refused_ids", "found", "responses")

    def __init__(self, wishes: list[_Wish], image: ClusterImage) -> None:
        self._image = image
        self.found: dict[bytes, str] = {}  # id -> name
        self.responses: list[dict[str, Any]] = []
        counts = Counter(self._well_formed(wishes))
        duplicates = [wish for wish, count in counts.items() if count > 1]
        self._refused_ids = {topic_id for name, topic_id in duplicates if name is None}
        for name, topic_id in duplicates:
            what = "id" if name is None else "name"
            self._refuse(name, topic_id, f"Duplicate topic {what}.")
        singles = [wish for wish, count in counts.items() if count == 1]
        for name, topic_id in singles:
            if name is None:
                self._find_id(topic_id)
        for name, _ in singles:
            if name is not None:
                self._find_name(name)

    def _well_formed(self, wishes: list[_Wish]) -> Iterator[_Wish]:
        for name, topic_id in wishes:
            if name is None and topic_id == ZERO_UUID:
                self._refuse(None, ZERO_UUID, "A topic has neither name nor id.")
            elif name is not None and topic_id != ZERO_UUID:
                self._refuse(name, topic_id, "A topic has both name and id.")
            else:
                yield name, topic_id

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
            self._refuse(name, topic.topic_id, "The topic is given by its id as well.")
        else:
            self.found[topic.topic_id] = name

    def _refuse(self, name: str | None, topic_id: bytes, message: str) -> None:
        error = KafkaError(ErrorCode.INVALID_REQUEST, message)
        self.responses.append(_response(name, topic_id, error))


def _disabled(version: int) -> KafkaError:
    if version < _KNOWS_DISABLED:
        return KafkaError(ErrorCode.INVALID_REQUEST)
    return KafkaError(ErrorCode.TOPIC_DELETION_DISABLED)


def _response(name: str | None, topic_id: bytes, error: KafkaError | None) -> dict[str, Any]:
    return {
        "name": name,
        "topic_id": topic_id,
        "error_code": int(error.code) if error else 0,
        "error_message": error.message if error else None,
    }
