"""One partition of the pending topic: its committed records, applied in order.

The state is a function of these records, so a restart and another instance arrive at the same one.

- An entry with an id replaces the pending one with this id.
- A command cancels a pending entry, or makes it due at once.
- A record without a value ends the entry with this name.

A replaced entry, and a command, stay in the topic until their names are written without a value. In
the topic a replaced entry must never outlive the one that replaced it: it would become pending
again. So garbage is written before any later entry ends (`garbage` before `due`).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from wirebroker.delivery.model.entry import (
    EntryCommand,
    EntryFormatError,
    EntryKind,
    NewerFormatError,
    decode_entry,
    read_head,
)

if TYPE_CHECKING:
    from wirebroker.delivery.pending.store import PendingStore

logger = logging.getLogger(__name__)

# Due before any time.
_AT_ONCE_MS: Final = 0
_STAMP_AFTER_MS: Final = 60_000


class PendingPartition:
    """The pending entries of one partition.

    Attributes:
        number: The partition's number.
        store: Its index; store.next_offset <= next_offset.
        next_offset: The next offset to apply.
    """

    __slots__ = (
        "_ended_unread",
        "_is_changed",
        "_ready_offset",
        "_unread",
        "next_offset",
        "number",
        "store",
    )

    def __init__(self, number: int, store: PendingStore, ready_offset: int) -> None:
        """Take over a partition.

        Entries are due only when the records before `ready_offset` are applied: the end of the
        partition, open transactions included, after the former owner was fenced.
        """
        assert ready_offset >= 0
        self.number = number
        self.store = store
        self.next_offset = store.next_offset
        self._ready_offset = ready_offset
        self._is_changed = False
        # Names by id of written records that this partition has not read yet.
        self._unread: dict[str, set[str]] = {}
        # Names of ended entries whose records without a value were not read yet.
        self._ended_unread: set[str] = set()

    @property
    def is_ready(self) -> bool:
        """Whether all entries of former owners are known."""
        return self.next_offset >= self._ready_offset

    def apply(self, offset: int, key: bytes | None, value: bytes | None) -> None:
        """Apply a committed record; one that was applied before is ignored.

        Raises:
            NewerFormatError: It was written by a newer version of the service.
        """
        if offset < self.next_offset:
            return
        self.next_offset = offset + 1
        self._is_changed = True
        name = (key or b"").decode(errors="replace")
        if value is None:
            if name in self._ended_unread:
                self._ended_unread.discard(name)
            else:
                self.store.remove(name)
            return
        try:
            head = read_head(name, value)
            if head.delivery_id is not None:
                self.expect_no_longer(head.delivery_id, name)
            if head.kind is EntryKind.RECORD:
                self._cancel(head.delivery_id and self.store.name_of(head.delivery_id))
                self.store.put(name, head.target, head.due_ms, head.delivery_id, value)
                return
            command = decode_entry(name, value)
        except NewerFormatError:
            raise
        except EntryFormatError as error:
            logger.error(  # noqa: TRY400 - foreign data, not a bug
                "record %d of partition %d of the pending topic is ignored: %s",
                offset,
                self.number,
                error,
            )
            return
        assert isinstance(command, EntryCommand), "the head says so"
        self._carry_out(command)

    def expect(self, delivery_id: str, name: str) -> None:
        """Note a record with an id that is being written; see `expects`."""
        self._unread.setdefault(delivery_id, set()).add(name)

    def expect_no_longer(self, delivery_id: str, name: str) -> None:
        """Note that such a record was read, or its transaction aborted."""
        names = self._unread.get(delivery_id)
        if names is not None:
            names.discard(name)
            if not names:
                del self._unread[delivery_id]

    def expects(self, delivery_id: str | None) -> bool:
        """Return whether a record with an id was not read yet: the pending one is not delivered."""
        return delivery_id in self._unread

    def reach(self, offset: int) -> None:
        """Note that there is no record to apply before an offset."""
        if offset > self.next_offset:
            self.next_offset = offset
            self._is_changed = True

    def _cancel(self, name: str | None) -> None:
        if name is not None and self.store.remove(name):
            self.store.add_garbage(name)

    def _carry_out(self, command: EntryCommand) -> None:
        name = command.entry
        if command.delivery_id is not None:
            name = self.store.name_of(command.delivery_id)
        if command.kind is EntryKind.CANCEL:
            self._cancel(name)
            self.store.add_garbage(command.name)
        elif name is not None and self.store.set_due(name, _AT_ONCE_MS):
            # Without it, the entry would wait again after a restart.
            self.store.add_garbage(command.name, while_pending=name)
        else:
            self.store.add_garbage(command.name)

    def end(self, name: str) -> None:
        """Note that an entry was ended by a committed transaction.

        The record without a value that did it arrives later, and changes nothing.
        """
        self._is_changed = True
        if self.store.remove(name):
            self._ended_unread.add(name)

    def save(self, now_ms: int, topic_id: str) -> None:
        """Make the state durable, if it changed or was not saved for some time."""
        if self._is_changed or now_ms - self.store.stamp_ms >= _STAMP_AFTER_MS:
            # While it is loaded, entries may be missing that ended since the last stamp.
            stamp_ms = now_ms if self.is_ready else self.store.stamp_ms or now_ms
            self.store.commit(self.next_offset, stamp_ms, topic_id)
            self._is_changed = False
