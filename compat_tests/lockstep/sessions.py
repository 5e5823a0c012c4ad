"""Steps about fetch sessions (KIP-227): opened, used, changed, misused and closed.

In between, records are produced and topics are deleted and recreated.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from compat_tests.lockstep.record_sets import sound
from compat_tests.lockstep.topics import Topic, Topics
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Callable

    from compat_tests.lockstep.kind import Moves
    from compat_tests.lockstep.steps import Answer, Expression

_LARGE = 10_000_000
_FIRST_WITH_SESSIONS = 7
_FIRST_BY_ID = 13
_MOST_SESSIONS = 5
_UNKNOWN_SESSION = 123_456


@dataclass(slots=True)
class Session:
    session_id: Expression
    version: int
    epoch: int = 1  # of the next request
    # (topic name, partition): the topic when the session added it.
    held: dict[tuple[str, int], Topic] = field(default_factory=dict)


class Sessions(Topics):
    name = "sessions"
    keys = frozenset({ApiKey.FETCH, ApiKey.PRODUCE})

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.sessions: list[Session] = []

    def beginning(self) -> Moves:
        for partitions in (3, 2, 1):
            yield from self.create(partitions)

    def moves(self) -> list[tuple[int, Callable[[], Moves]]]:
        return [
            (20, self.produce),
            (10, self.open),
            (45, self.go_on),
            (6, self.misuse),
            (4, self.close),
            (2, self.delete_records),
            (1, lambda: self.add_partitions(self.any_topic())),
            (3, lambda: self.recreate(self.any_topic())),
        ]

    def ending(self) -> Moves:
        for session in list(self.sessions):
            yield from self._use(session, [], [])
        yield from self.survey()

    # -- moves -------------------------------------------------------------------------------

    def produce(self) -> Moves:
        topic = self.any_topic()
        index = self.random.choice(topic.partitions)
        data = [{"index": index, "records": sound(self.random).records}]
        request = {
            "acks": -1,
            "timeout_ms": 30_000,
            "topic_data": [{**topic.both, "partition_data": data}],
        }
        answer = yield from self.ask(
            ApiKey.PRODUCE, request, version=self.version(ApiKey.PRODUCE, 3)
        )
        self.learn_ends(answer, [topic])

    def open(self) -> Moves:
        """Request a session; without partitions the broker creates none."""
        version = self.version(ApiKey.FETCH, _FIRST_WITH_SESSIONS)
        partitions = self._wanted(3) if self.maybe(0.95) else []
        request = self._request(0, 0, partitions, [])
        answer = yield from self.ask(ApiKey.FETCH, request, version=version)
        session_id = answer.name("session_id", "S")
        if session_id is None:
            return
        session = Session(session_id, version)
        _take(session, partitions)
        self.sessions.append(session)
        if len(self.sessions) > _MOST_SESSIONS:
            self.sessions.pop(0)

    def go_on(self) -> Moves:
        """Use a session: unchanged, with other offsets, or with more or fewer partitions."""
        if not self.sessions:
            yield from self.open()
            return
        session = self.random.choice(self.sessions)
        partitions = self._wanted(2) if self.maybe(0.6) else []
        forgotten = self.some([*session.held], 0, 2) if self.maybe(0.3) else []
        if self.maybe(0.03):
            forgotten.append((self.any_topic().name, 77))
        yield from self._use(session, partitions, forgotten)

    def misuse(self) -> Moves:
        """Send a wrong epoch, an unknown session, or topic names where the session uses ids."""
        if not self.sessions:
            return
        session = self.random.choice(self.sessions)
        session_id: Expression | int = session.session_id
        epoch, version = session.epoch, session.version
        match self.random.randrange(4):
            case 0:
                epoch += self.random.choice((-1, 1, 5))
                if epoch == 0:
                    epoch = 2
            case 1:
                session_id = _UNKNOWN_SESSION
            case 2:
                session_id, epoch = 0, self.random.choice((1, 5))
            case _:
                by_id = version >= _FIRST_BY_ID
                bounds = (_FIRST_WITH_SESSIONS, _FIRST_BY_ID - 1) if by_id else (_FIRST_BY_ID, 99)
                version = self.version(ApiKey.FETCH, *bounds)
        request = self._request(session_id, epoch, self._wanted(1), [])
        answer = yield from self.ask(ApiKey.FETCH, request, version=version)
        if answer.is_good and version != session.version:
            session.epoch += 1

    def close(self) -> Moves:
        """Close a session, perhaps opening a new one in the same request."""
        if not self.sessions:
            return
        session = self.sessions.pop(self.random.randrange(len(self.sessions)))
        epoch = self.random.choice((-1, -1, 0))
        partitions = self._wanted(2)
        request = self._request(session.session_id, epoch, partitions, [])
        answer = yield from self.ask(ApiKey.FETCH, request, version=session.version)
        renewed = answer.name("session_id", "S")
        if renewed is not None:
            session = Session(renewed, session.version)
            _take(session, partitions)
            self.sessions.append(session)

    def delete_records(self) -> Moves:
        """Raise a partition's start offset, which sessions report."""
        topic = self.any_topic()
        index = self.random.choice(topic.partitions)
        partition = {
            "partition_index": index,
            "offset": self.random.choice((-1, topic.ends[index] // 2)),
        }
        request = {
            "topics": [{"name": topic.name, "partitions": [partition]}],
            "timeout_ms": 30_000,
        }
        yield from self.ask(ApiKey.DELETE_RECORDS, request)

    # -- parts -------------------------------------------------------------------------------

    def _use(
        self,
        session: Session,
        partitions: list[tuple[Topic, int]],
        forgotten: list[tuple[str, int]],
    ) -> Moves:
        forgotten_fields = [
            ({"topic": name, "topic_id": session.held[name, index].topic_id}, index)
            if (name, index) in session.held
            else ({"topic": name, "topic_id": self.any_topic().topic_id}, index)
            for name, index in forgotten
        ]
        request = self._request(session.session_id, session.epoch, partitions, forgotten_fields)
        answer = yield from self.ask(ApiKey.FETCH, request, version=session.version)
        self._learn(session, answer, partitions, forgotten)

    def _learn(
        self,
        session: Session,
        answer: Answer,
        partitions: list[tuple[Topic, int]],
        forgotten: list[tuple[str, int]],
    ) -> None:
        if answer.number("error_code"):
            self.sessions.remove(session)
            return
        session.epoch += 1
        for partition in forgotten:
            session.held.pop(partition, None)
        _take(session, partitions)

    def _wanted(self, maximum: int) -> list[tuple[Topic, int]]:
        all_partitions = [(topic, index) for topic in self.topics for index in topic.partitions]
        chosen = self.some(all_partitions, maximum=maximum)
        if self.maybe(0.05):
            chosen.append((self.strange_topic(), 0))
        if self.maybe(0.05):
            chosen.append((self.any_topic(), 50))
        return chosen

    def _request(
        self,
        session_id: Expression | int,
        epoch: int,
        partitions: list[tuple[Topic, int]],
        forgotten: list[tuple[dict[str, Any], int]],
    ) -> dict[str, Any]:
        topics = [
            {**topic.both_in_fetch, "partitions": [self._read(topic, index)]}
            for topic, index in partitions
        ]
        return {
            "max_wait_ms": 0,
            "min_bytes": 0,
            "max_bytes": self.random.choice((_LARGE, _LARGE, _LARGE, 100, 1)),
            "isolation_level": 0,
            "session_id": session_id,
            "session_epoch": epoch,
            "topics": topics,
            "forgotten_topics_data": [
                {**names, "partitions": [index]} for names, index in forgotten
            ],
        }

    def _read(self, topic: Topic, index: int) -> dict[str, Any]:
        end = topic.ends[index] if index in topic.partitions else 0
        offset = self.random.choice((end, end, self.random.randint(0, end), end + 50))
        return {
            "partition": index,
            "fetch_offset": offset,
            "partition_max_bytes": self.random.choice((_LARGE, _LARGE, 100)),
        }


def _take(session: Session, partitions: list[tuple[Topic, int]]) -> None:
    for topic, index in partitions:
        session.held[topic.name, index] = topic
