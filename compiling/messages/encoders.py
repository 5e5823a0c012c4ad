"""Generator of the function that encodes one version of one message.

Tagged fields are written, in order, if they differ from their defaults. A field that the version
lacks must have its default unless it is ignorable. A value that its type cannot represent raises an
exception, which codecs/message.py converts to AssertionError.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from compiling.messages.schema import FIXED_BYTES
from compiling.messages.source import SourceWriter, array_letter, default_source, is_fixed

if TYPE_CHECKING:
    from compiling.messages.schema import Field, MessageSchema, StructSchema

# Fields whose nonzero values are counted in the dict `errors`.
_ERROR_CODES: Final = (
    "acknowledge_error_code",
    "error_code",
    "partition_error_code",
    "topic_config_error_code",
)


def encoder_source(schema: MessageSchema, constants: dict[str, str], version: int) -> str:
    """Return the body of a function (value, errors) -> bytes."""
    is_flexible = version in schema.flexible_versions
    writer = SourceWriter(constants, version=version, is_flexible=is_flexible)
    writer.line("out = bytearray()")
    _emit_struct(writer, schema.body, "value", "out", schema.name)
    writer.line("return bytes(out)")
    return writer.text


def _emit_struct(
    writer: SourceWriter, schema: StructSchema, value: str, out: str, path: str
) -> None:
    with writer.block(f"if {value}.__class__ is not {schema.name}:"):
        writer.line(f"{value} = as_struct({schema.name}, {value})")
    run: list[Field] = []
    for field in schema.fields:
        field_path = f"{path}.{field.name}"
        if not writer.has(field):
            _emit_absence_check(writer, field, value, field_path)
        elif writer.is_tagged(field):
            continue
        elif is_fixed(field):
            run.append(field)
        else:
            _emit_run(writer, run, value, out, path)
            run = []
            local = writer.variable("x")
            writer.line(f"{local} = {value}.{field.name}")
            _emit_varying(writer, field, local, out, field_path)
    _emit_run(writer, run, value, out, path)
    if writer.is_flexible:
        _emit_tagged_fields(writer, schema, value, out, path)


def _emit_absence_check(writer: SourceWriter, field: Field, value: str, path: str) -> None:
    if field.is_ignorable:
        return
    default = default_source(field)
    if field.struct is not None and not field.is_array and field.default is not None:
        default = writer.default_struct(field.struct.name)
    with writer.block(f"if {value}.{field.name} != {default}:"):
        writer.line(f"raise unfit({path!r}, 'is set and the version lacks it')")


def _emit_run(writer: SourceWriter, run: list[Field], value: str, out: str, path: str) -> None:
    if not run:
        return
    for field in run:
        if field.type == "uuid":
            # struct would silently pad or truncate other lengths.
            with writer.block(f"if len({value}.{field.name}) != 16:"):
                writer.line(f"raise unfit({f'{path}.{field.name}'!r}, 'is not of 16 bytes')")
        if field.name in _ERROR_CODES:
            with writer.block(f"if {value}.{field.name}:"):
                code = f"{value}.{field.name}"
                writer.line(f"errors[{code}] = errors.get({code}, 0) + 1")
    packer = writer.packer([field.type for field in run])
    attributes = ", ".join(f"{value}.{field.name}" for field in run)
    writer.line(f"{out} += {packer}({attributes})")


def _emit_varying(writer: SourceWriter, field: Field, local: str, out: str, path: str) -> None:
    if not writer.is_nullable(field):
        _emit_content(writer, field, local, out, path)
        return
    with writer.block(f"if {local} is None:"):
        writer.line(f"{out} += {_null(writer, field)!r}")
    with writer.block("else:"):
        if field.struct is not None and not field.is_array:
            writer.line(f"{out} += {bytes([1])!r}")
        _emit_content(writer, field, local, out, path)


def _null(writer: SourceWriter, field: Field) -> bytes:
    if field.struct is not None and not field.is_array:
        return b"\x00" if writer.is_tagged(field) else b"\xff"
    if writer.is_flexible:
        return b"\x00"
    return b"\xff" * (2 if field.type == "string" and not field.is_array else 4)


def _emit_content(writer: SourceWriter, field: Field, local: str, out: str, path: str) -> None:
    if field.is_array:
        _emit_array(writer, field, local, out, path)
    elif field.struct is not None:
        _emit_struct(writer, field.struct, local, out, path)
    else:
        _emit_bytes(writer, field.type, local, out, path)


def _emit_bytes(writer: SourceWriter, type_name: str, local: str, out: str, path: str) -> None:
    if type_name != "string":
        _emit_length(writer, f"len({local})", "int32", out)
        writer.line(f"{out} += {local}")
        return
    encoded, length = writer.variable("b"), writer.variable("n")
    writer.line(f"{encoded} = {local}.encode()")
    writer.line(f"{length} = len({encoded})")
    with writer.block(f"if {length} > 32767:"):
        writer.line(f"raise unfit({path!r}, 'is longer than 32767 bytes')")
    _emit_length(writer, length, "int16", out)
    writer.line(f"{out} += {encoded}")


def _emit_length(writer: SourceWriter, length: str, width: str, out: str) -> None:
    if writer.is_flexible:
        writer.line(f"{out} += uvarint({length} + 1)")
    else:
        writer.line(f"{out} += {writer.packer([width])}({length})")


def _emit_array(writer: SourceWriter, field: Field, local: str, out: str, path: str) -> None:
    _emit_length(writer, f"len({local})", "int32", out)
    if field.type in FIXED_BYTES and field.type != "uuid":
        writer.line(f"{out} += pack(f'>{{len({local})}}{array_letter(field.type)}', *{local})")
        return
    element = writer.variable("e")
    with writer.block(f"for {element} in {local}:"):
        if field.struct is not None:
            _emit_struct(writer, field.struct, element, out, path)
        elif field.type == "uuid":
            with writer.block(f"if len({element}) != 16:"):
                writer.line(f"raise unfit({path!r}, 'is not of 16 bytes')")
            writer.line(f"{out} += {element}")
        else:
            _emit_bytes(writer, field.type, element, out, path)


def _emit_tagged_fields(
    writer: SourceWriter, schema: StructSchema, value: str, out: str, path: str
) -> None:
    fields = writer.tagged_fields(schema)
    if not fields:
        writer.line(f"{out}.append(0)")
        return
    count, section = writer.variable("count"), writer.variable("section")
    writer.line(f"{count} = 0")
    writer.line(f"{section} = bytearray()")
    for field in fields:
        local = writer.variable("x")
        writer.line(f"{local} = {value}.{field.name}")
        with writer.block(f"if {_differs_from_default(writer, field, local)}:"):
            content = writer.variable("content")
            writer.line(f"{content} = bytearray()")
            if is_fixed(field):
                _emit_run(writer, [field], value, content, path)
            else:
                _emit_varying(writer, field, local, content, f"{path}.{field.name}")
            writer.line(f"{section} += uvarint({field.tag}) + uvarint(len({content})) + {content}")
            writer.line(f"{count} += 1")
    writer.line(f"{out} += uvarint({count})")
    writer.line(f"{out} += {section}")


def _differs_from_default(writer: SourceWriter, field: Field, local: str) -> str:
    if field.default is None:
        return f"{local} is not None"
    if field.is_array:
        return f"{local} is None or len({local})"
    if field.struct is None:
        return f"{local} != {field.default!r}"
    default = writer.default_struct(field.struct.name)
    is_given = f"{local} is not None and " if writer.is_nullable(field) else ""
    with writer.block(f"if {is_given}{local}.__class__ is not {field.struct.name}:"):
        writer.line(f"{local} = as_struct({field.struct.name}, {local})")
    return f"{local} != {default}"
