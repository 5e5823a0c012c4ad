"""Steps about the state of share groups, as a broker reads and writes it (KIP-932).

The groups have no members. Clients may send these requests as well; each names groups, partitions,
epochs and batches, valid and invalid. In the end the stored states are compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from compat_tests.lockstep.steps import command
from compat_tests.lockstep.topics import UNKNOWN_ID, Topics
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Callable

    from compat_tests.lockstep.kind import Moves

_AVAILABLE, _ACKNOWLEDGED, _ARCHIVED = 0, 2, 4
_EVERY_KEY = (
    ApiKey.INITIALIZE_SHARE_GROUP_STATE,
    ApiKey.READ_SHARE_GROUP_STATE,
    ApiKey.WRITE_SHARE_GROUP_STATE,
    ApiKey.DELETE_SHARE_GROUP_STATE,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
)


class ShareStates(Topics):
    name = "share-states"
    keys = frozenset({*_EVERY_KEY, ApiKey.FIND_COORDINATOR})

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.group_ids = [f"{self.prefix}state{number}" for number in (1, 2)]
        self._state_epoch = 1
        self._leader_epoch = 0

    def beginning(self) -> Moves:
        for partitions in (2, 1):
            yield from self.create(partitions)
        yield command(["coordinator"])
        yield command(["share-coordinator", self.topics[0].name])
        for _ in range(2):
            yield from self.initialize()

    def moves(self) -> list[tuple[int, Callable[[], Moves]]]:
        return [
            (6, self.initialize),
            (40, self.write),
            (12, self.read),
            (8, self.summarize),
            (3, self.delete_states),
            (4, self.raise_epoch),
            (4, self.without_entries),
            (3, self.find_coordinator),
            (1, self.unserved_version),
        ]

    def ending(self) -> Moves:
        for group_id in self.group_ids:
            topics = [
                {
                    "topic_id": topic.topic_id,
                    "partitions": [
                        {"partition": index, "leader_epoch": 0} for index in topic.partitions
                    ],
                }
                for topic in self.topics
            ]
            request = {"group_id": group_id, "topics": topics}
            for key in (ApiKey.READ_SHARE_GROUP_STATE, ApiKey.READ_SHARE_GROUP_STATE_SUMMARY):
                yield from self.ask(key, request)

    # -- requests ----------------------------------------------------------------------------

    def initialize(self) -> Moves:
        yield from self._send(
            ApiKey.INITIALIZE_SHARE_GROUP_STATE,
            lambda: {
                "state_epoch": self._near(self._state_epoch),
                "start_offset": self.random.choice((0, 0, -1, 5, -7)),
            },
        )

    def write(self) -> Moves:
        yield from self._send(
            ApiKey.WRITE_SHARE_GROUP_STATE,
            lambda: {
                "state_epoch": self._near(self._state_epoch),
                "leader_epoch": self._near(self._leader_epoch),
                "start_offset": self.random.choice((-1, -1, 0, 5, 20, -3)),
                "delivery_complete_count": self.random.choice((-1, 0, 3)),
                "state_batches": self._batches(),
            },
        )

    def read(self) -> Moves:
        yield from self._send(
            ApiKey.READ_SHARE_GROUP_STATE, lambda: {"leader_epoch": self._near(self._leader_epoch)}
        )

    def summarize(self) -> Moves:
        yield from self._send(
            ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
            lambda: {"leader_epoch": self._near(self._leader_epoch)},
        )

    def delete_states(self) -> Moves:
        yield from self._send(ApiKey.DELETE_SHARE_GROUP_STATE, dict)

    def raise_epoch(self) -> Moves:
        """Let later requests have a higher epoch, as after a new leader or a new group."""
        if self.maybe(0.5):
            self._state_epoch += 1
        else:
            self._leader_epoch += 1
        yield from self.read()

    def without_entries(self) -> Moves:
        """Send a request without topics, or with a topic without partitions."""
        topic_id = self.any_topic().topic_id
        topics: list[dict[str, Any]] = self.random.choice(
            ([], [{"topic_id": topic_id, "partitions": []}])
        )
        request = {"group_id": self.random.choice((*self.group_ids, "")), "topics": topics}
        yield from self.ask(self.random.choice(_EVERY_KEY), request)

    def find_coordinator(self) -> Moves:
        topic = self.any_topic()
        keys = [
            f"{self.group_ids[0]}:x:0",
            f"{self.group_ids[0]}:AAAAAAAAAAAAAAAAAAAAAA:0",
            "a:b",
            "",
            topic.name,
        ]
        request = {"key_type": 2, "coordinator_keys": self.some(keys)}
        version = self.version(ApiKey.FIND_COORDINATOR, 4)
        yield from self.ask(ApiKey.FIND_COORDINATOR, request, version=version)

    # -- parts -------------------------------------------------------------------------------

    def _send(self, key: ApiKey, fields: Callable[[], dict[str, Any]]) -> Moves:
        topics = [
            {
                "topic_id": topic.topic_id,
                "partitions": [
                    {"partition": index, **fields()} for index in self.some(topic.partitions)
                ],
            }
            for topic in self.some(self.topics, maximum=2)
        ]
        if self.maybe(0.06):
            topics.append({"topic_id": UNKNOWN_ID, "partitions": [{"partition": 0, **fields()}]})
        if self.maybe(0.04):
            topics[0]["partitions"] = [
                {"partition": self.random.choice((-1, 99)), **fields()},
            ]
        group_id = self.random.choice(self.group_ids)
        if self.maybe(0.04):
            group_id = self.random.choice(("", f"{self.prefix}unknown"))
        yield from self.ask(key, {"group_id": group_id, "topics": topics})

    def _batches(self) -> list[dict[str, Any]]:
        batches = []
        for _ in range(self.random.randrange(4)):
            first = self.random.randrange(40)
            batches.append(
                {
                    "first_offset": first,
                    "last_offset": first + self.random.randrange(6),
                    "delivery_state": self.random.choice((_AVAILABLE, _ACKNOWLEDGED, _ARCHIVED)),
                    "delivery_count": self.random.choice((0, 1, 2, 5)),
                }
            )
        if batches and self.maybe(0.06):
            batches[0] |= self.random.choice(
                (
                    {"last_offset": -1},
                    {"first_offset": -5},
                    {"delivery_state": 1},
                    {"delivery_state": 9},
                    {"delivery_count": -1},
                )
            )
        return batches

    def _near(self, epoch: int) -> int:
        """Return the epoch, sometimes a wrong one; a higher one would become the next."""
        return epoch if self.maybe(0.93) else self.random.choice((-1, max(0, epoch - 1)))
