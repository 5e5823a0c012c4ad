"""Share sessions (KIP-932) as their clients see them, and their requests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from compat_tests.lockstep.topics import Topic, Topics
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Iterable

    from compat_tests.lockstep.steps import Answer

ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
GAP: Final = 0
FINAL_EPOCH: Final = -1
LARGE: Final = 10_000_000
# The first request that names a share partition waits until it is loaded.
LOADING_MS: Final = 1000

Place = tuple[str, int]  # the name of a topic and a partition
Batch = dict[str, Any]  # of an acknowledgement
RECORD_LIMIT: Final = 0  # share_acquire_mode
_ALL_RECORDS: Final = 100_000


@dataclass(slots=True)
class ShareSession:
    member_id: str
    connection: str
    epoch: int = 0  # of the next request
    held: set[Place] = field(default_factory=set)
    # The ranges of offsets that the member has acquired.
    acquired: dict[Place, list[tuple[int, int]]] = field(default_factory=dict)

    def end(self) -> None:
        self.epoch = 0
        self.held.clear()
        self.acquired.clear()

    def acknowledge(self, place: Place, first: int, last: int) -> None:
        """Remove a range from the acquired records."""
        ranges = self.acquired.pop(place, [])
        parts = [
            part
            for start, end in ranges
            for part in ((start, min(end, first - 1)), (max(start, last + 1), end))
            if part[0] <= part[1]
        ]
        if parts:
            self.acquired[place] = parts


@dataclass(slots=True)
class ShareGroup:
    group_id: str
    sessions: list[ShareSession]
    keeper: ShareSession  # its session keeps the share partitions loaded


def acknowledged(first: int, last: int, *types: int) -> Batch:
    return {"first_offset": first, "last_offset": last, "acknowledge_types": list(types)}


class ShareRequests(Topics):
    """Requests of share sessions; `ShareFetches` selects session and time."""

    def _fetch_fields(
        self,
        group: ShareGroup,
        session: ShareSession,
        partitions: Iterable[Place],
        acknowledgements: dict[Place, list[Batch]],
        forgotten: Iterable[Place] = (),
    ) -> dict[str, Any]:
        requested = {place: acknowledgements.get(place, []) for place in partitions}
        # If there is no room for the records of all partitions, Apache Kafka serves those last
        # whose next offset has changed (docs/compatibility.md).
        session.held.update(requested, acknowledgements)  # a ShareFetch adds all that it names
        is_alone = len(session.held) < 2
        return {
            **self._identity(group, session),
            "max_wait_ms": 0,
            "min_bytes": self.random.choice((0, 1)),
            "max_bytes": self.random.choice((LARGE, 100, 1)) if is_alone else LARGE,
            "max_records": self.random.choice((500, 1, 3)) if is_alone else _ALL_RECORDS,
            "batch_size": self.random.choice((500, 1, 2)),
            "share_acquire_mode": self.random.choice((RECORD_LIMIT, RECORD_LIMIT, 1)),
            "is_renew_ack": False,
            "topics": self._by_topic({**requested, **acknowledgements}),
            "forgotten_topics_data": [
                {"topic_id": self._id_of(name), "partitions": [index]} for name, index in forgotten
            ],
        }

    def _acknowledge_fields(
        self, group: ShareGroup, session: ShareSession, batches: dict[Place, list[Batch]]
    ) -> dict[str, Any]:
        return {
            **self._identity(group, session),
            "is_renew_ack": False,
            "topics": self._by_topic(batches),
        }

    def _identity(self, group: ShareGroup, session: ShareSession) -> dict[str, Any]:
        return {
            "group_id": group.group_id,
            "member_id": session.member_id,
            "share_session_epoch": session.epoch,
        }

    def _by_topic(self, batches: dict[Place, list[Batch]]) -> list[dict[str, Any]]:
        names = dict.fromkeys(name for name, _ in batches)
        return [
            {
                "topic_id": self._id_of(name),
                "partitions": [
                    {"partition_index": index, "acknowledgement_batches": listed}
                    for (of, index), listed in batches.items()
                    if of == name
                ],
            }
            for name in names
        ]

    def _id_of(self, name: str) -> Any:
        ids = {topic.name: topic.topic_id for topic in self.topics}
        return ids.get(name, self.strange_topic().topic_id)

    def _learn_acknowledged(
        self, session: ShareSession, batches: dict[Place, list[Batch]], answer: Answer
    ) -> None:
        """Remove the acknowledged records of partitions without an error."""
        for place, listed in batches.items():
            if self._has_acknowledged(place, answer):
                for batch in listed:
                    if batch["acknowledge_types"] != [RENEW]:
                        session.acknowledge(place, batch["first_offset"], batch["last_offset"])

    def _has_acknowledged(self, place: Place, answer: Answer) -> bool:
        name, index = place
        topic_id, number = repr(self._id_of(name)), 0
        while listed_id := answer.get(f"responses[{number}].topic_id"):
            partition = f"responses[{number}].partitions[{index}]"
            # A ShareFetch has a separate error for acknowledgements.
            error = answer.number(f"{partition}.error_code")
            error = answer.number(f"{partition}.acknowledge_error_code", error)
            if listed_id == topic_id and error == 0:
                return True
            number += 1
        return False

    def _learn_fetched(self, session: ShareSession, answer: Answer) -> None:
        """Add the acquired records of a response."""
        names = {repr(topic.topic_id): topic for topic in self.topics}
        number = 0
        while topic_id := answer.get(f"responses[{number}].topic_id"):
            topic = names.get(topic_id)
            for index in topic.partitions if topic else ():
                assert topic is not None
                self._learn_acquired(session, answer, topic, index, f"responses[{number}]")
            number += 1

    def _learn_acquired(
        self, session: ShareSession, answer: Answer, topic: Topic, index: int, of: str
    ) -> None:
        path = f"{of}.partitions[{index}].acquired_records"
        number = 0
        while answer.get(f"{path}[{number}].first_offset"):
            first = answer.number(f"{path}[{number}].first_offset")
            last = answer.number(f"{path}[{number}].last_offset")
            session.acquired.setdefault((topic.name, index), []).append((first, last))
            number += 1

    def _describe_offsets(self, group: ShareGroup, *, version: int | None = None) -> Any:
        topics = [
            {"topic_name": topic.name, "partitions": topic.partitions} for topic in self.topics
        ]
        request = {"groups": [{"group_id": group.group_id, "topics": topics}]}
        yield from self.ask(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, request, version=version)
