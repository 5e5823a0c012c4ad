"""Compiles message definitions into Python functions, each on first use.

    message = Message(schema)
    value = message.decode(version, data)         MalformedFrameError for whatever does not fit
    data = message.encode(version, value)         AssertionError: we send only what fits
    steps = message.decode_in_steps(version, data)   the same in steps of a millisecond

One (message, version, direction) costs about 0.5 ms once, so nothing is compiled before it is
needed.

Source: KIP-482 for the encoding; Kafka's generated message classes for what is accepted.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

from wirebroker.codecs.codegen_decode import generate_decoder
from wirebroker.codecs.codegen_encode import generate_encoder
from wirebroker.codecs.errors import MalformedFrameError
from wirebroker.codecs.values import StructClasses

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import TypeAlias

    from wirebroker.codecs.primitives import Buffer
    from wirebroker.codecs.schema import MessageSchema

    _Steps: TypeAlias = Generator[None, None, Any]

# Elements of all arrays, and tagged fields, that one message may have. The largest honest request,
# CreateTopics of 10,000 partitions with three replicas assigned by hand, has 50,000.
MAX_ELEMENTS: Final = 500_000

# Below this a message is copied into bytes, which Python reads faster than a memoryview. Above it
# the bytes are mostly one payload, and a copy costs time and memory.
_COPIED_BYTES: Final = 1 << 20


class Message:
    """One message of the protocol in all its versions.

    Attributes:
        schema: Its definition.
        struct_class: The class of its outermost struct.
    """

    __slots__ = ("_classes", "_decoders", "_encoders", "_step_decoders", "schema", "struct_class")

    def __init__(self, schema: MessageSchema) -> None:
        self.schema = schema
        self._classes = StructClasses(schema.body).by_name
        self.struct_class: type[Any] = self._classes[schema.body.name]
        self._decoders: dict[int, Callable[[Buffer, int, int], Any]] = {}
        self._step_decoders: dict[int, Callable[[Buffer, int, int], _Steps]] = {}
        self._encoders: dict[int, Callable[[Any], bytes]] = {}

    def decode(
        self, version: int, data: Buffer, position: int = 0, *, max_elements: int = MAX_ELEMENTS
    ) -> Any:
        """Decode a message that begins at `position` and ends with `data`.

        Returns:
            A struct that keeps nothing of `data`: strings and bytes are copies.

        Raises:
            MalformedFrameError: The bytes are not this version of this message.
        """
        decoder = self._decoders.get(version)
        if decoder is None:
            assert version in self.schema.versions, f"{self.schema.name} has no version {version}"
            decoder = generate_decoder(self.schema, self._classes, version)
            self._decoders[version] = decoder
        try:
            return decoder(_readable(data), position, max_elements)
        except (struct.error, IndexError, UnicodeDecodeError) as error:
            malformed = self._malformed(version, error)
        raise malformed

    def decode_in_steps(
        self, version: int, data: Buffer, position: int = 0, *, max_elements: int = MAX_ELEMENTS
    ) -> _Steps:
        """Decode as `decode` does, yielding after each millisecond or so; return the struct.

        For messages so large that the event loop should turn meanwhile: half a million elements
        take 0.3 s.
        """
        decoder = self._step_decoders.get(version)
        if decoder is None:
            assert version in self.schema.versions, f"{self.schema.name} has no version {version}"
            decoder = generate_decoder(self.schema, self._classes, version, is_stepwise=True)
            self._step_decoders[version] = decoder
        try:
            steps: _Steps = decoder(_readable(data), position, max_elements)
            return (yield from steps)
        except (struct.error, IndexError, UnicodeDecodeError) as error:
            malformed = self._malformed(version, error)
        raise malformed

    def encode(self, version: int, value: object) -> bytes:
        """Encode a struct of this message, or a mapping with the same names.

        Raises:
            AssertionError: It has an unknown key, a value that its field cannot hold, or a field
                set that the version lacks (unless the schema calls that field ignorable).
        """
        encoder = self._encoders.get(version)
        if encoder is None:
            assert version in self.schema.versions, f"{self.schema.name} has no version {version}"
            encoder = generate_encoder(self.schema, self._classes, version)
            self._encoders[version] = encoder
        try:
            return encoder(value)
        except (struct.error, AttributeError, TypeError, ValueError) as error:
            raise AssertionError(f"{self.schema.name} v{version}: {error}") from error

    def _malformed(self, version: int, error: Exception) -> MalformedFrameError:
        is_text = isinstance(error, UnicodeDecodeError)
        what = "has a string that is not UTF-8" if is_text else "ends too early"
        return MalformedFrameError(f"{self.schema.name} v{version} {what}")


def _readable(data: Buffer) -> Buffer:
    return bytes(data) if len(data) <= _COPIED_BYTES else data
