"""The hashes of groups' topics against Kafka's own class, by one Java process."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.java.java_program import JavaProgram
from tests.support.harness.budget import Budget
from wirebroker.coordinator.groups.metadata_hash import group_hash, topic_hash

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

pytestmark = pytest.mark.java

# In the order of Python and of Java differently: a surrogate pair and a letter above it.
LETTERS = "ab-.B0é\uff21\U00010400"
MOST_TOPICS = 6
# XXH3 treats inputs of up to 16, 128, 240 and 1,024 bytes differently.
SIZES = (0, 1, 4, 16, 130)


class Topic(NamedTuple):
    topic_id: bytes
    name: str
    racks: list[list[str]]

    def encoded(self) -> bytes:
        partitions = b"".join(
            struct.pack(">i", len(racks)) + b"".join(map(text, racks)) for racks in self.racks
        )
        return self.topic_id + text(self.name) + struct.pack(">i", len(self.racks)) + partitions


def text(value: str) -> bytes:
    return struct.pack(">i", len(value.encode())) + value.encode()


def some_text(random: Random, most: int) -> str:
    return "".join(random.choices(LETTERS, k=random.randint(0, most)))


def some_topics(random: Random) -> list[Topic]:
    names = [some_text(random, 250) for _ in range(random.randint(0, MOST_TOPICS))]
    racks = [some_text(random, 30) for _ in range(4)]
    return [
        Topic(
            random.randbytes(16),
            name,
            [
                random.choices(racks, k=random.randint(0, 4))
                for _ in range(random.randint(0, random.choice(SIZES)))
            ],
        )
        for name in dict.fromkeys(names)
    ]


@pytest.fixture(scope="module")
def kafka() -> Iterator[JavaProgram]:
    program = JavaProgram("MetadataHashes")
    yield program
    program.close()


def test_hashes_equal_those_of_kafka(kafka: JavaProgram, pytestconfig: pytest.Config) -> None:
    budget = Budget(pytestconfig, seconds=1)
    for _ in budget.rounds():
        topics = some_topics(budget.random)
        question = struct.pack(">i", len(topics)) + b"".join(topic.encoded() for topic in topics)
        _, (answer,) = kafka.ask(question, 1)
        *expected, expected_of_all = (value for (value,) in struct.iter_unpack(">q", answer))
        hashes = {topic.name: topic_hash(*topic) for topic in topics}
        assert [*hashes.values()] == expected, f"seed {budget.seed}: {topics}"
        assert group_hash(hashes) == expected_of_all, f"seed {budget.seed}: {topics}"
