"""Writer of source text and facts about types, for both code generators."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from compiling.messages.schema import FIXED_BYTES

if TYPE_CHECKING:
    from collections.abc import Generator

    from compiling.messages.schema import Field, StructSchema

# Bools are encoded as signed bytes, which refuses None.
_DECODE_LETTERS: Final = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}
_ENCODE_LETTERS: Final = {**_DECODE_LETTERS, "bool": "b"}


class SourceWriter:
    """The body of one function under construction.

    Attributes:
        is_flexible: Whether the version has compact lengths and tagged fields.
        constants: Expressions of module-level names.
    """

    __slots__ = ("_depth", "_last_number", "_lines", "constants", "is_flexible", "version")

    def __init__(self, constants: dict[str, str], *, version: int, is_flexible: bool) -> None:
        self.version = version
        self.is_flexible = is_flexible
        self.constants = constants
        self._lines: list[str] = []
        self._depth = 1
        self._last_number = 0

    @property
    def text(self) -> str:
        """The source so far."""
        return "\n".join(self._lines)

    def line(self, text: str) -> None:
        """Add a line."""
        self._lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, head: str) -> Generator[None]:
        """Add a head line; indent the lines added in the `with`."""
        self.line(head)
        self._depth += 1
        yield
        self._depth -= 1

    def variable(self, stem: str) -> str:
        """Return an unused name."""
        self._last_number += 1
        return f"{stem}{self._last_number}"

    def unpacker(self, types: list[str]) -> str:
        """Return the name of a reader of these types."""
        letters = "".join(_DECODE_LETTERS[name] for name in types)
        return self._constant("unpack_", letters, "unpack_from")

    def packer(self, types: list[str]) -> str:
        """Return the name of an encoder of these types."""
        letters = "".join(_ENCODE_LETTERS[name] for name in types)
        return self._constant("pack_", letters, "pack")

    def default_struct(self, name: str) -> str:
        """Return the name of a struct with default values."""
        self.constants[f"default_{name}"] = f"{name}()"
        return f"default_{name}"

    def _constant(self, stem: str, letters: str, method: str) -> str:
        name = stem + letters.replace("?", "t")  # `?` is not valid in a name
        self.constants[name] = f'Layout(">{letters}").{method}'
        return name

    def has(self, field: Field) -> bool:
        """Return whether the version has the field."""
        return self.version in field.versions

    def is_tagged(self, field: Field) -> bool:
        """Return whether the field is tagged in the version."""
        return self.is_flexible and self.version in field.tagged_versions

    def is_nullable(self, field: Field) -> bool:
        """Return whether the field may be null in the version."""
        return self.version in field.nullable_versions

    def tagged_fields(self, schema: StructSchema) -> list[Field]:
        """Return the version's tagged fields, ordered by tag."""
        fields = [field for field in schema.fields if self.has(field) and self.is_tagged(field)]
        return sorted(fields, key=lambda field: field.tag)


def is_fixed(field: Field) -> bool:
    """Return whether the field has a fixed length."""
    return field.type in FIXED_BYTES and not field.is_array


def default_source(field: Field) -> str:
    """Return the expression for a field's default."""
    if field.default is None:
        return "None"
    if field.is_array:
        return "[]"
    if field.struct is not None:
        return f"{field.struct.name}()"
    return repr(field.default)


def array_letter(element: str) -> str:
    """Return the struct letter of a fixed type except uuid."""
    return _ENCODE_LETTERS[element]


def fewest_element_bytes(writer: SourceWriter, field: Field) -> int:
    """Return an array element's minimum size, at least 1."""
    if field.struct is not None:
        return max(1, _fewest_struct_bytes(writer, field.struct))
    if field.type in FIXED_BYTES:
        return FIXED_BYTES[field.type]
    return _length_bytes(writer, is_string=field.type == "string")


def _length_bytes(writer: SourceWriter, *, is_string: bool) -> int:
    if writer.is_flexible:
        return 1
    return 2 if is_string else 4


def _fewest_struct_bytes(writer: SourceWriter, schema: StructSchema) -> int:
    total = 1 if writer.is_flexible else 0  # the count of tagged fields
    for field in schema.fields:
        if not writer.has(field) or writer.is_tagged(field):
            continue
        if is_fixed(field):
            total += FIXED_BYTES[field.type]
        elif field.struct is None or field.is_array:
            total += _length_bytes(writer, is_string=field.type == "string" and not field.is_array)
        elif writer.is_nullable(field):
            total += 1
        else:
            total += _fewest_struct_bytes(writer, field.struct)
    return total
