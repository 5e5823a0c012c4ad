"""Generator of the function that decodes one version of one message.

The function has nested loops and no calls per field:

    def decode_5(data, pos, left):
        end = len(data)
        o1 = new(CreateTopicsRequest)
        ...

Each length or count is checked against the remaining bytes. `left` limits the elements and tagged
fields of the whole message. Reading past the end raises struct.error or IndexError, which
codecs/message.py converts to MalformedFrameError.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiling.messages.schema import FIXED_BYTES
from compiling.messages.source import (
    SourceWriter,
    array_letter,
    default_source,
    fewest_element_bytes,
    is_fixed,
)

if TYPE_CHECKING:
    from compiling.messages.schema import Field, MessageSchema, StructSchema


def decoder_source(schema: MessageSchema, constants: dict[str, str], version: int) -> str:
    """Return the body of a function (data, pos, left) -> Struct."""
    is_flexible = version in schema.flexible_versions
    writer = SourceWriter(constants, version=version, is_flexible=is_flexible)
    writer.line("end = len(data)")
    value = _emit_struct(writer, schema.body, schema.name)
    # Kafka ignores bytes that some clients append to requests (librdkafka, kafka-go).
    wrong = "pos > end" if schema.name.endswith("Request") else "pos != end"
    with writer.block(f"if {wrong}:"):
        writer.line(f"raise malformed('{schema.name}: ' + str(end - pos) + ' bytes too many')")
    writer.line(f"return {value}")
    return writer.text


def _emit_struct(writer: SourceWriter, schema: StructSchema, path: str) -> str:
    """Write a struct's decoder; return its variable."""
    target = writer.variable("o")
    writer.line(f"{target} = new({schema.name})")
    run: list[Field] = []
    for field in schema.fields:
        attribute = f"{target}.{field.name}"
        if not writer.has(field) or writer.is_tagged(field):
            writer.line(f"{attribute} = {default_source(field)}")
        elif is_fixed(field):
            run.append(field)
        else:
            _emit_run(writer, run, target)
            run = []
            _emit_varying(writer, field, attribute, f"{path}.{field.name}")
    _emit_run(writer, run, target)
    if writer.is_flexible:
        _emit_tagged_fields(writer, schema, target, path)
    return target


def _emit_run(writer: SourceWriter, run: list[Field], target: str) -> None:
    if run:
        types = [field.type for field in run]
        attributes = ", ".join(f"{target}.{field.name}" for field in run)
        writer.line(f"({attributes},) = {writer.unpacker(types)}(data, pos)")
        writer.line(f"pos += {sum(FIXED_BYTES[name] for name in types)}")


def _emit_varying(writer: SourceWriter, field: Field, target: str, path: str) -> None:
    if field.struct is not None and not field.is_array:
        _emit_nested(writer, field, target, path)
        return
    length = writer.variable("n")
    _emit_length(writer, field, length)
    if not writer.is_nullable(field):
        with writer.block(f"if {length} < 0:"):
            writer.line(f"raise bad_length({path!r}, {length})")
        _emit_content(writer, field, target, length, path)
        return
    with writer.block(f"if {length} < 0:"):
        with writer.block(f"if {length} != -1:"):
            writer.line(f"raise bad_length({path!r}, {length})")
        writer.line(f"{target} = None")
    with writer.block("else:"):
        _emit_content(writer, field, target, length, path)


def _emit_nested(writer: SourceWriter, field: Field, target: str, path: str) -> None:
    assert field.struct is not None
    if not writer.is_nullable(field):
        writer.line(f"{target} = {_emit_struct(writer, field.struct, path)}")
        return
    # A nullable struct begins with a byte, negative for null, or a tagged one with a uvarint, 0 for
    # null.
    mark = writer.variable("n")
    if writer.is_tagged(field):
        _emit_uvarint(writer, mark)
        is_null = f"{mark} == 0"
    else:
        writer.line(f"({mark},) = {writer.unpacker(['int8'])}(data, pos)")
        writer.line("pos += 1")
        is_null = f"{mark} < 0"
    with writer.block(f"if {is_null}:"):
        writer.line(f"{target} = None")
    with writer.block("else:"):
        writer.line(f"{target} = {_emit_struct(writer, field.struct, path)}")


def _emit_uvarint(writer: SourceWriter, variable: str) -> None:
    writer.line(f"{variable} = data[pos]")
    with writer.block(f"if {variable} < 128:"):
        writer.line("pos += 1")
    with writer.block("else:"):
        writer.line(f"{variable}, pos = read_uvarint(data, pos)")


def _emit_length(writer: SourceWriter, field: Field, length: str) -> None:
    """Write code that reads a length or count; -1 is null."""
    if writer.is_flexible:
        _emit_uvarint(writer, length)
        writer.line(f"{length} -= 1")
        return
    width = "int16" if field.type == "string" and not field.is_array else "int32"
    writer.line(f"({length},) = {writer.unpacker([width])}(data, pos)")
    writer.line(f"pos += {FIXED_BYTES[width]}")


def _emit_content(writer: SourceWriter, field: Field, target: str, length: str, path: str) -> None:
    if field.is_array:
        _emit_array(writer, field, target, length, path)
    else:
        _emit_bytes(writer, field.type, target, length, path)


def _emit_bytes(writer: SourceWriter, type_name: str, target: str, length: str, path: str) -> None:
    stop = writer.variable("stop")
    writer.line(f"{stop} = pos + {length}")
    # Kafka refuses longer strings in flexible versions too.
    too_long = f" or {length} > 32767" if type_name == "string" and writer.is_flexible else ""
    with writer.block(f"if {stop} > end{too_long}:"):
        writer.line(f"raise beyond({path!r}, {length}, end - pos)")
    slice_source = f"data[pos:{stop}]"
    # Records keep the type of `data`: bytes, or a view for appending elsewhere.
    values = {"string": f"str({slice_source}, 'utf-8')", "records": slice_source}
    writer.line(f"{target} = {values.get(type_name, f'bytes({slice_source})')}")
    writer.line(f"pos = {stop}")


def _emit_array(writer: SourceWriter, field: Field, target: str, count: str, path: str) -> None:
    with writer.block(f"if {count} > (end - pos) // {fewest_element_bytes(writer, field)}:"):
        writer.line(f"raise beyond({path!r}, {count}, end - pos)")
    _emit_budget(writer, count, path)
    if field.type in FIXED_BYTES:
        size = FIXED_BYTES[field.type]
        stop = f"pos + {count} * {size}"
        if field.type == "uuid":
            writer.line(f"{target} = [bytes(data[p:p + 16]) for p in range(pos, {stop}, 16)]")
        else:
            letter = array_letter(field.type)
            writer.line(f"{target} = list(unpack_from(f'>{{{count}}}{letter}', data, pos))")
        writer.line(f"pos = {stop}")
        return
    values = writer.variable("a")
    writer.line(f"{values} = []")
    with writer.block(f"for _ in range({count}):"):
        if field.struct is not None:
            element = _emit_struct(writer, field.struct, path)
        else:
            element = writer.variable("e")
            length = writer.variable("n")
            _emit_element_length(writer, field, length, path)
            _emit_bytes(writer, field.type, element, length, path)
        writer.line(f"{values}.append({element})")
    writer.line(f"{target} = {values}")


def _emit_element_length(writer: SourceWriter, field: Field, length: str, path: str) -> None:
    if writer.is_flexible:
        _emit_uvarint(writer, length)
        writer.line(f"{length} -= 1")
    else:
        width = "int16" if field.type == "string" else "int32"
        writer.line(f"({length},) = {writer.unpacker([width])}(data, pos)")
        writer.line(f"pos += {FIXED_BYTES[width]}")
    with writer.block(f"if {length} < 0:"):
        writer.line(f"raise bad_length({path!r}, {length})")


def _emit_budget(writer: SourceWriter, count: str, path: str) -> None:
    writer.line(f"left -= {count}")
    with writer.block("if left < 0:"):
        writer.line(f"raise malformed({path + ': more elements than a message may have'!r})")


def _emit_tagged_fields(writer: SourceWriter, schema: StructSchema, target: str, path: str) -> None:
    count = writer.variable("n")
    _emit_uvarint(writer, count)
    with writer.block(f"if {count}:"):
        with writer.block(f"if {count} > MAX_TAGGED_FIELDS or {count} * 2 > end - pos:"):
            writer.line(f"raise beyond({path + ': tagged fields'!r}, {count}, end - pos)")
        _emit_budget(writer, count, path)
        with writer.block(f"for _ in range({count}):"):
            tag, size, stop = (writer.variable(stem) for stem in ("tag", "size", "stop"))
            _emit_uvarint(writer, tag)
            _emit_uvarint(writer, size)
            writer.line(f"{stop} = pos + {size}")
            with writer.block(f"if {stop} > end:"):
                writer.line(f"raise beyond({path + ': a tagged field'!r}, {size}, end - pos)")
            for field in writer.tagged_fields(schema):
                with writer.block(f"if {tag} == {field.tag}:"):
                    _emit_tagged(writer, field, target, stop, path)
            writer.line(f"pos = {stop}")


def _emit_tagged(writer: SourceWriter, field: Field, target: str, stop: str, path: str) -> None:
    field_path = f"{path}.{field.name}"
    if is_fixed(field):
        _emit_run(writer, [field], target)
    else:
        _emit_varying(writer, field, f"{target}.{field.name}", field_path)
    with writer.block(f"if pos != {stop}:"):
        writer.line(f"raise malformed({field_path + ': not of the length its tag says'!r})")
