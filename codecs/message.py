"""One message of the protocol: its codec in all versions, from a generated module.

The module (codecs/generated, written by compiling/messages) has a class per struct and a function
per version and direction; identical versions share one. To save memory it is imported on first use.

Source: KIP-482 for the encoding; Kafka's generated message classes for what is accepted.
"""

from __future__ import annotations

import struct
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from wirebroker.codecs.errors import MalformedFrameError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from wirebroker.codecs.primitives import Buffer

# The largest legitimate request, CreateTopics for 10,000 partitions with three replicas, has 50,000
# elements.
MAX_ELEMENTS: Final = 500_000

# Python reads bytes faster than a memoryview, but copies of large messages cost time and memory.
_COPIED_BYTES: Final = 1 << 20

_GENERATED: Final = "wirebroker.codecs.generated"


class MessageModule(Protocol):
    """The contents of a module of codecs/generated, besides its structs."""

    NAME: str
    NUMBER: int
    VERSIONS: range
    HAS_RECORDS: bool
    STRUCT: type[Any]
    DECODERS: Mapping[int, Callable[[Buffer, int, int], Any]]
    ENCODERS: Mapping[int, Callable[[Any, dict[int, int]], bytes]]


class Message:
    """A message of the protocol in all its versions.

    Attributes:
        name: Kafka's name.
        number: API key of a request or response, type of a record.
        has_records: Whether it carries record batches.
        struct_class: Its outermost struct.
    """

    __slots__ = (
        "_decoders",
        "_encoders",
        "has_records",
        "name",
        "number",
        "struct_class",
        "versions",
    )

    def __init__(self, module: MessageModule) -> None:
        self.name = module.NAME
        self.number = module.NUMBER
        self.versions = module.VERSIONS
        self.has_records = module.HAS_RECORDS
        self.struct_class = module.STRUCT
        self._decoders = module.DECODERS
        self._encoders = module.ENCODERS

    def decode(
        self,
        version: int,
        data: Buffer,
        position: int = 0,
        *,
        max_elements: int = MAX_ELEMENTS,
        keep_views: bool = False,
    ) -> Any:
        """Decode a message that begins at `position` and ends with `data`.

        `max_elements` limits all arrays together. With `keep_views` record batches are views into
        `data`.

        Raises:
            MalformedFrameError.
        """
        assert version in self.versions, f"{self.name} has no version {version}"
        decoder = self._decoders[version]
        if self.has_records:
            readable: Buffer = memoryview(data) if keep_views else bytes(data)
        else:
            readable = bytes(data) if len(data) <= _COPIED_BYTES else data
        try:
            return decoder(readable, position, max_elements)
        except (struct.error, IndexError, UnicodeDecodeError) as error:
            malformed = self._malformed(version, error)
        raise malformed

    def encode(self, version: int, value: object, errors: dict[int, int] | None = None) -> bytes:
        """Encode a struct of this message, or a mapping with the same names.

        `errors` counts the value's error codes other than 0.

        Raises:
            AssertionError: It has an unknown key, a value that its field cannot hold, or a field
                that the version lacks (unless the schema calls it ignorable).
        """
        assert version in self.versions, f"{self.name} has no version {version}"
        encoder = self._encoders[version]
        try:
            return encoder(value, {} if errors is None else errors)
        except (struct.error, AttributeError, TypeError, ValueError) as error:
            raise AssertionError(f"{self.name} v{version}: {error}") from error

    def _malformed(self, version: int, error: Exception) -> MalformedFrameError:
        is_text = isinstance(error, UnicodeDecodeError)
        what = "has a string that is not UTF-8" if is_text else "ends too early"
        return MalformedFrameError(f"{self.name} v{version} {what}")


def load_message(module: str) -> Message:
    """Return the message of a module of codecs/generated.

    Raises:
        LookupError: There is no such message.
        ImportError: codecs/generated is empty: the package was not built.
    """
    name = f"{_GENERATED}.{module}"
    try:
        found = import_module(name)
    except ModuleNotFoundError as error:
        if error.name == name and _is_built():
            raise LookupError(f"there is no definition of {module}") from error
        raise
    return Message(cast("MessageModule", found))


def _is_built() -> bool:
    try:
        import_module(f"{_GENERATED}.made_from")
    except ModuleNotFoundError as error:
        raise ImportError(
            "codecs/generated is empty: install wirebroker (pip install -e .) or generate"
            " its message modules (python -m compiling.messages)"
        ) from error
    return True
