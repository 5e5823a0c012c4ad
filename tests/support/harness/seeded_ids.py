"""Seeded ids of topics, directories and members, which are otherwise random."""

from __future__ import annotations

import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING
from unittest import mock

from wirebroker.codecs import primitives

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random


@contextmanager
def seeded_ids(random: Random) -> Iterator[None]:
    random_bytes = random.randbytes

    def new_uuid() -> uuid.UUID:
        return uuid.UUID(bytes=random_bytes(16), version=4)

    with (
        mock.patch.object(primitives.random_uuid, "__defaults__", (random_bytes,)),
        mock.patch.object(uuid, "uuid4", new_uuid),
    ):
        yield
