"""Detection of a recreated source topic, by its topic id.

The job's folder stores the id; folders from earlier versions get the current one.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from confluent_kafka import KafkaException, TopicCollection

from wirebroker.codecs.primitives import uuid_text
from wirebroker.pipelines.delivery.positions import WAIT_S
from wirebroker.pipelines.delivery.rights import quiet_admin
from wirebroker.segments.errors import recreated
from wirebroker.segments.log_directories import LogDirectories, topic_ids

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from confluent_kafka.admin import AdminClient

    from wirebroker.pipelines.job.job_folder import JobFolder
    from wirebroker.pipelines.source.source_table import SourceOptions

_NO_ID: Final = bytes(16)


class SourceChangedError(OSError):
    """The source's topic was recreated, so the run must restart with the new one."""


class ReadTopic(NamedTuple):
    """The topic at a broker that a batch reads, with its id when the batch began."""

    kafka: dict[str, str]
    topic: str
    topic_id: str

    def check(self) -> None:
        """Check, before a batch is sent, that the topic was not recreated.

        Raises:
            SourceChangedError: The batch may contain records of the new topic.
            KafkaException: A request failed.
        """
        now = ids_at_broker(_cached_admin(tuple(self.kafka.items())), [self.topic])
        if now.get(self.topic, self.topic_id) != self.topic_id:
            raise SourceChangedError(
                f"topic {self.topic} was recreated while it was read: topic id {self.topic_id}, "
                f"now {now[self.topic]}"
            )


class SourceIdentity:
    """The id of the topic that a job reads, the first of `source`.

    With `restarts`, a recreated topic is read from its beginning.
    """

    def __init__(
        self, source: SourceOptions, kafka: Mapping[str, str], folder: JobFolder, *, restarts: bool
    ) -> None:
        self._topic = source.topics[0]
        self._path = source.path
        self._kafka = kafka
        self._folder = folder
        self._restarts = restarts
        self._admin: AdminClient | None = None

    def find_restart(self) -> str:
        """Return the topic's id if reading must restart with it, else "".

        Raises:
            RecreatedTopicError: The topic was recreated, and the job does not restart.
            KafkaException: A request failed.
        """
        saved_id, current_id = self._folder.source_id, self._current()
        if not saved_id and current_id:
            self._folder.take_source(current_id)
        if not (saved_id and current_id) or saved_id == current_id:
            return ""
        if self._restarts:
            return current_id
        raise self._error(saved_id, current_id)

    def check(self) -> None:
        """Check that the query reads the current topic.

        Raises:
            RecreatedTopicError, KafkaException: As `find_restart`.
            SourceChangedError: The query must restart.
        """
        if self.find_restart():
            raise SourceChangedError(f"topic {self._topic} was recreated: reading restarts")

    def read_topic(self) -> ReadTopic | None:
        """Return the topic that a batch reads; None if unknown, or for log directories."""
        saved_id = self._folder.source_id
        if self._path or not saved_id:
            return None
        return ReadTopic(dict(self._kafka), self._topic, saved_id)

    def told(self, current_id: str) -> str:
        """Return the message that the topic was recreated."""
        saved_id = self._folder.source_id
        return f"topic {self._topic} was recreated: topic id {saved_id}, now {current_id}"

    def _error(self, saved_id: str, current_id: str) -> Exception:
        advice = 'recreated_topic = "restart" reads the new one from its beginning.'
        return recreated(self._topic, saved_id, current_id, advice)

    def _current(self) -> str:
        """Return the topic's current id; "" if the topic is missing or its id unknown."""
        if self._path:
            folders = LogDirectories(tuple(self._path.split(","))).find(self._is_read)
            return topic_ids(folders).get(self._topic, "")
        return ids_at_broker(self._client(), [self._topic]).get(self._topic, "")

    def _is_read(self, topic: str, _: int) -> bool:
        return topic == self._topic

    def _client(self) -> AdminClient:
        if self._admin is None:
            self._admin = quiet_admin(self._kafka)
        return self._admin


@lru_cache(maxsize=1)
def _cached_admin(settings: tuple[tuple[str, str], ...]) -> AdminClient:
    return quiet_admin(dict(settings))


def ids_at_broker(admin: AdminClient, topics: Collection[str]) -> dict[str, str]:
    """Return the ids of topics at a broker, as Kafka writes them."""
    futures = admin.describe_topics(TopicCollection(list(topics)), request_timeout=WAIT_S)
    ids: dict[str, str] = {}
    for topic, future in futures.items():
        try:
            uuid = future.result().topic_id
        except KafkaException as error:
            if error.args[0].name() not in ("UNKNOWN_TOPIC_OR_PART", "TOPIC_AUTHORIZATION_FAILED"):
                raise
            continue
        halves = (uuid.get_most_significant_bits(), uuid.get_least_significant_bits())
        topic_id = b"".join(half.to_bytes(8, signed=True) for half in halves)
        if topic_id != _NO_ID:
            ids[topic] = uuid_text(topic_id)
    return ids
