"""Random messages for the codec tests, and the list of all messages.

Values favor edge cases: the ends of each type's range, null, empty, zero uuids, non-ASCII text.
`tame` values can be represented by kio, which uses enums for error codes and datetimes for
timestamps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.support.protocol.message_schemas import schema_of
from wirebroker.codecs.api_keys import API_VERSIONS, FIRST_PRODUCE_VERSION, ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.messages import request_message, response_message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random

    from compiling.messages.schema import Field, StructSchema
    from wirebroker.codecs.message import Message

INTEGER_RANGES = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "uint16": (0, 2**16 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
}
TEXTS = ("", "a", "topic-1", "ä", "主题", "\N{GRINNING FACE}", "x" * 126, "y" * 127, "z" * 300)

# Without the keys that Kafka 4 removed.
KEYS = [key for key in ApiKey if not ApiKey.LEADER_AND_ISR <= key <= ApiKey.CONTROLLED_SHUTDOWN]

# kio's last version of the keys that Kafka 4.4 has changed or added.
_LAST_OF_KIO = {
    ApiKey.API_VERSIONS: 4,
    ApiKey.TXN_OFFSET_COMMIT: 5,
    ApiKey.DELETE_GROUPS: 2,
    ApiKey.STREAMS_GROUP_HEARTBEAT: 0,
    ApiKey.STREAMS_GROUP_DESCRIBE: 0,
    ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE: -1,
    ApiKey.UNREGISTER_CONTROLLER: -1,
}

_LAST_ERROR_OF_KIO = ErrorCode.SHARE_SESSION_LIMIT_REACHED

# 1 January 2100 in milliseconds; datetime and timedelta can represent all lower values.
YEAR_2100_MS = 4_102_444_800_000


@dataclass(slots=True, frozen=True)
class Case:
    key: ApiKey
    is_request: bool
    version: int

    @property
    def message(self) -> Message:
        return request_message(self.key) if self.is_request else response_message(self.key)

    def __str__(self) -> str:
        return f"{self.message.name} v{self.version}"


def versions_of(key: ApiKey) -> range:
    """Return the advertised versions, or all versions of a key that only controllers serve."""
    versions = API_VERSIONS.get(key)
    if versions is None:
        return request_message(key).versions
    first = FIRST_PRODUCE_VERSION if key is ApiKey.PRODUCE else versions.min_version
    return range(first, versions.max_version + 1)


def kio_knows(key: ApiKey, version: int) -> bool:
    return version <= _LAST_OF_KIO.get(key, version)


def all_cases() -> list[Case]:
    """Return the requests and responses of all versions of Kafka 4's keys."""
    return list(_cases())


def _cases() -> Iterator[Case]:
    for key in KEYS:
        for version in versions_of(key):
            yield Case(key, True, version)
            yield Case(key, False, version)


class ValueMaker:
    """Generator of random values that fit a schema."""

    def __init__(self, random: Random, *, tame: bool = False, most_elements: int = 3) -> None:
        self._random = random
        self._tame = tame
        self._most_elements = most_elements
        self._makers: dict[str, Callable[[], object]] = {
            "bool": lambda: random.random() < 0.5,
            "string": lambda: random.choice(TEXTS),
            "bytes": self._bytes,
            "records": self._bytes,
            "uuid": lambda: random.choice((bytes(16), random.randbytes(16))),
            "float64": lambda: random.choice((0.0, -1.5, 1e300, random.random())),
        }

    def message(self, message: Message, version: int) -> dict[str, Any]:
        """Return the fields of the version; tagged fields are included at random."""
        return self._struct(schema_of(message).body, version)

    def _struct(self, schema: StructSchema, version: int) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for field in schema.fields:
            if version not in field.versions:
                continue
            if version in field.tagged_versions and self._random.random() < 0.5:
                continue
            values[field.name] = self._field(field, version)
        return values

    def _field(self, field: Field, version: int) -> Any:
        if version in field.nullable_versions and self._random.random() < 0.2:
            return None
        if field.is_array:
            count = self._random.randint(0, self._most_elements)
            return [self._element(field, version) for _ in range(count)]
        return self._element(field, version)

    def _element(self, field: Field, version: int) -> Any:
        if field.struct is not None:
            return self._struct(field.struct, version)
        maker = self._makers.get(field.type)
        return maker() if maker is not None else self._integer(field)

    def _integer(self, field: Field) -> int:
        if self._tame and field.name.endswith("error_code"):
            return self._random.choice([code for code in ErrorCode if code <= _LAST_ERROR_OF_KIO])
        lowest, highest = INTEGER_RANGES[field.type]
        if self._tame and field.type == "int64" and ("time" in field.name or "_ms" in field.name):
            lowest, highest = 0, YEAR_2100_MS
        return self._random.choice((lowest, highest, 0, 1, self._random.randint(lowest, highest)))

    def _bytes(self) -> bytes:
        return self._random.randbytes(self._random.choice((0, 1, 5, 127, 128, 300)))
