"""Pending records that are canceled or delivered at once, and dead letters that are sent again."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from wirebroker.base.clock import SystemClock
from wirebroker.base.text import counted
from wirebroker.base.threads import Work, in_thread
from wirebroker.client.errors import ClientError
from wirebroker.config.rows.row import ConfigError
from wirebroker.console.changes.change import (
    ChangeError,
    ChangeKind,
    ConsoleRole,
    Field,
    FieldKind,
    PreparedChange,
)
from wirebroker.console.changes.command_line import verb_line
from wirebroker.console.changes.field_values import number_of
from wirebroker.console.delivery.delivery_state import DEFAULT_GROUP
from wirebroker.console.delivery.pending_reading import is_readable, pending_record
from wirebroker.console.view.formats import iso_time
from wirebroker.delivery.letters.letter import LetterFilter
from wirebroker.delivery.letters.redrive_group import redrive_group
from wirebroker.delivery.model.entry import EntryKind
from wirebroker.delivery.operations import send_command
from wirebroker.delivery.service.errors import ServiceError
from wirebroker.delivery.service.settings import pending_topic_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.console.model.collector import Collector
    from wirebroker.console.model.settings import ClusterSettings
    from wirebroker.delivery.letters.redrive import Redrive
    from wirebroker.delivery.operations import PendingRow

_MOST_COUNT: Final = (1 << 31) - 1
_NO_LIBRARY: Final = "a redrive needs confluent-kafka: pip install 'wirebroker[delivery]'"


async def _row(collector: Collector, values: Mapping[str, str]) -> tuple[str, PendingRow | None]:
    """Return the pending topic and the record, None if the topic is too large to be searched."""
    if bool(values["delivery_id"]) is bool(values["entry"]):
        raise ChangeError("name the record by its id or by its entry", "delivery_id")
    name = pending_topic_of(values["group"])
    topic = collector.snapshot.topics.get(name)
    if topic is None:
        raise ChangeError(f"there is no delivery service {values['group']}", "group")
    if not is_readable(topic):
        if values["entry"]:
            raise ChangeError(
                "the pending topic is too large to be searched here: use the command line", "entry"
            )
        return name, None
    row = await pending_record(
        collector, topic, delivery_id=values["delivery_id"] or None, entry=values["entry"] or None
    )
    if row is None:
        raise ChangeError("no such record is pending: it may have been delivered meanwhile")
    return name, row


async def _command(
    collector: Collector, values: Mapping[str, str], kind: EntryKind, verb: str, effect: str
) -> PreparedChange:
    topic, row = await _row(collector, values)
    delivery_id, entry = values["delivery_id"] or None, values["entry"] or None
    name = delivery_id or (row.delivery_id if row is not None else None) or entry or ""

    async def apply() -> str:
        await send_command(
            collector.client,
            topic,
            kind,
            delivery_id=delivery_id,
            entry=entry,
            partition=row.partition if row is not None else None,
        )
        return f"{name}: sent to the service; it takes effect if the record is still pending"

    lines = [f"record {name}: {effect}"]
    if row is not None:
        lines += [
            f"due {iso_time(row.due_ms)} in topic {row.target}",
            f"key {row.key if row.key is not None else 'null'}, {counted(row.value_bytes, 'byte')}",
        ]
    chosen = ("--id", delivery_id) if delivery_id else ("--entry", entry or "")
    return PreparedChange(
        f"{'Cancel' if kind is EntryKind.CANCEL else 'Deliver'} a pending record of"
        f" {values['group']}",
        tuple(lines),
        verb_line(
            collector.settings, f"delivery {verb}", ("--group", values["group"], *chosen, "--yes")
        ),
        apply,
        ("the record is lost",) if kind is EntryKind.CANCEL else (),
    )


async def _cancel(collector: Collector, values: Mapping[str, str]) -> PreparedChange:
    return await _command(collector, values, EntryKind.CANCEL, "cancel", "it is not delivered")


async def _deliver_now(collector: Collector, values: Mapping[str, str]) -> PreparedChange:
    return await _command(
        collector, values, EntryKind.HURRY, "deliver-now", "it is delivered at once"
    )


def _redrive_of(
    settings: ClusterSettings, values: Mapping[str, str], stop: threading.Event
) -> Redrive:
    """Return the redrive of the values, or raise ChangeError."""
    try:
        from wirebroker.delivery.letters.redrive import (  # noqa: PLC0415 - an extra
            Redrive,
            RedriveRequest,
        )
        from wirebroker.delivery.service.connection import librdkafka_settings  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name != "confluent_kafka":
            raise
        raise ChangeError(_NO_LIBRARY) from None

    def wait(seconds: float) -> None:
        if stop.wait(seconds):
            raise ServiceError("the redrive was stopped")

    request = RedriveRequest(
        values["topic"],
        values["target"] or None,
        LetterFilter(message=values["message"] or None),
        number_of(values, "count", 1, _MOST_COUNT),
        number_of(values, "rate", 1, _MOST_COUNT),
    )
    try:
        kafka = librdkafka_settings(settings.bootstrap, settings.properties)
    except ConfigError as error:
        raise ChangeError(str(error)) from None
    return Redrive(request, kafka, SystemClock(), wait)


def _redrive_flags(values: Mapping[str, str]) -> list[str]:
    named = (
        ("--message", values["message"]),
        ("--to", values["target"]),
        ("--count", values["count"]),
        ("--rate", values["rate"]),
    )
    return [word for flag, value in named if value for word in (flag, value)] + ["--yes"]


async def _redrive(collector: Collector, values: Mapping[str, str]) -> PreparedChange:
    topic = collector.snapshot.topics.get(values["topic"])
    if topic is None:
        raise ChangeError(f"there is no topic {values['topic']}", "topic")
    stop = threading.Event()
    redrive = _redrive_of(collector.settings, values, stop)

    async def apply() -> str:
        try:
            result = await in_thread(Work.REDRIVES, redrive.run)
        except ServiceError as error:
            raise ClientError("; ".join([str(error), *redrive.result.sentences()])) from None
        finally:
            stop.set()
        return "; ".join(result.sentences()) or "there was nothing to redrive"

    progress = collector.snapshot.groups.get(redrive_group(topic.name))
    notes = [f"{topic.name} has {counted(topic.record_count or 0, 'record')}"]
    if progress is not None and progress.lag is not None:
        notes.append(f"{progress.lag} of them follow the last redriven one")
    target = values["target"] or "the topics that they come from"
    lines = [f"each dead letter is sent to {target}, if it was not redriven before"]
    if values["message"]:
        lines.append(f"only those whose reason contains {values['message']!r}")
    if values["count"]:
        lines.append(f"at most {values['count']}")
    if values["rate"]:
        lines.append(f"at most {values['rate']} a second")
    return PreparedChange(
        f"Redrive dead letters of {topic.name}",
        tuple(lines),
        verb_line(collector.settings, "dlq redrive", _redrive_flags(values), [topic.name]),
        apply,
        ("all groups that read the target receive the records",),
        notes=tuple(notes),
        progress=lambda: counted(sum(redrive.result.sent.values()), "record"),
    )


_PENDING_FIELDS: Final = (
    Field("group", "Service", help="Its group.", is_required=False, default=DEFAULT_GROUP),
    Field("delivery_id", "Id", help="The record's deliver-id.", is_required=False),
    Field("entry", "Entry", help="For a record without an id.", is_required=False),
)

KINDS: Final[tuple[ChangeKind, ...]] = (
    ChangeKind(
        "cancel-delivery",
        "Cancel a pending record",
        ConsoleRole.OPERATOR,
        _PENDING_FIELDS,
        "group",
        _cancel,
        "delivery",
    ),
    ChangeKind(
        "deliver-now",
        "Deliver a pending record now",
        ConsoleRole.OPERATOR,
        _PENDING_FIELDS,
        "group",
        _deliver_now,
        "delivery",
    ),
    ChangeKind(
        "redrive",
        "Redrive dead letters",
        ConsoleRole.OPERATOR,
        (
            Field("topic", "Topic of dead letters"),
            Field(
                "target",
                "Send to",
                help="A topic; empty: the one that each dead letter comes from.",
                is_required=False,
            ),
            Field("message", "Reason contains", is_required=False),
            Field("count", "At most", FieldKind.NUMBER, help="Empty: all.", is_required=False),
            Field(
                "rate",
                "Records a second",
                FieldKind.NUMBER,
                help="Empty: as fast as possible.",
                is_required=False,
            ),
        ),
        "topic",
        _redrive,
        "delivery",
    ),
)
