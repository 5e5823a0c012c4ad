"""The protocol's message definitions, for tests that make or print arbitrary messages."""

from __future__ import annotations

from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, cast

from compiling.messages.definitions import all_schemas
from compiling.messages.modules import module_source
from wirebroker.codecs.message import Message

if TYPE_CHECKING:
    from compiling.messages.schema import MessageSchema
    from wirebroker.codecs.message import MessageModule


def schema_of(message: Message) -> MessageSchema:
    return _by_name()[message.name]


def message_of(schema: MessageSchema) -> Message:
    """Return the codec of a definition that is not part of the build."""
    module = ModuleType(schema.name)
    exec(module_source(schema), module.__dict__)
    return Message(cast("MessageModule", module))


@cache
def _by_name() -> dict[str, MessageSchema]:
    return {schema.name: schema for schema in all_schemas()}
