"""Common parts of all kinds of steps: a model, weighted moves, and their randomness.

A move is a generator: it yields steps and receives Apache Kafka's responses, from which it learns
the current state (base offsets, ids, errors). wirebroker's responses were the same, or the run
ends. So a kind does not model a broker's decisions, only the objects that requests can name.

Invariant: the steps depend on the seed and the responses only.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

from compat_tests.lockstep.steps import Answer, call, command, send, spelled
from tests.transcripts.script import Step

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping, Sequence

    from wirebroker.codecs.api_keys import ApiKey

Moves = Generator[Step, Answer, None]
Value = TypeVar("Value")
StepsWithResult = Generator[Step, Answer, Value]

_CONNECTIONS = ("first", "second", "third")


class Range(NamedTuple):
    """Versions of an API, both ends included."""

    first: int
    last: int


class Kind(abc.ABC):
    """One kind of steps.

    Args:
        random: Source of every choice.
        versions: Versions that both brokers advertise.
        prefix: Prefix of all names of this run.
    """

    name: ClassVar[str]
    # APIs that every run of a few hundred steps sends.
    keys: ClassVar[frozenset[ApiKey]]

    def __init__(
        self, random: random.Random, versions: Mapping[ApiKey, Range], prefix: str
    ) -> None:
        self.random = random
        self.versions = versions
        self.prefix = prefix

    def beginning(self) -> Moves:
        """Create what the moves need."""
        yield from ()

    @abc.abstractmethod
    def moves(self) -> list[tuple[int, Callable[[], Moves]]]:
        """Return each move with its weight."""

    def move(self) -> Moves:
        weights, choices = zip(*self.moves(), strict=True)
        yield from self.random.choices(choices, weights)[0]()

    def ending(self) -> Moves:
        """Compare the final state; every move is complete."""
        yield from ()

    # -- requests ----------------------------------------------------------------------------

    def version(self, key: ApiKey, lowest: int = 0, highest: int = 99) -> int:
        """Return a random version that both brokers advertise."""
        common = self.versions[key]
        return self.random.randint(max(lowest, common.first), min(highest, common.last))

    def ask(
        self, key: ApiKey, fields: Mapping[str, Any], *, version: int | None = None, to: str = ""
    ) -> StepsWithResult[Answer]:
        if version is None:
            version = self.version(key)
        answer = yield send(key, version, fields, to=to or self.random.choice(_CONNECTIONS))
        return answer

    def unserved_version(self) -> Moves:
        key = self.random.choice(sorted(self.keys))
        lowest, highest = self.versions[key]
        versions = [highest + 1, highest + 2, highest + 100]
        if lowest > 0:
            versions.append(lowest - 1)
        body = call("hex", self.random.choice(("", "00", "00" * 40)))
        words = ["frame", spelled(key), str(self.random.choice(versions))]
        yield command(words, {"body": body})

    # -- choices -----------------------------------------------------------------------------

    def maybe(self, probability: float) -> bool:
        """Return true with this probability."""
        return self.random.random() < probability

    def some(self, choices: Sequence[Value], minimum: int = 1, maximum: int = 3) -> list[Value]:
        """Return a few distinct elements in random order."""
        count = self.random.randint(min(minimum, len(choices)), min(maximum, len(choices)))
        return self.random.sample(choices, count)
