"""Options of a read, described in spark_it/README.md.

Names are those of the Kafka connector, and ignore case. Other `kafka.` options have no effect.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast

from wirebroker.codecs.json_text import parse_json
from wirebroker.codecs.special_offsets import EARLIEST, LATEST
from wirebroker.segments.errors import OptionError
from wirebroker.segments.trigger_limits import delay_ms_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.storage.checkpoints import TopicPartition

_TRIGGER_DELAY: Final = "15m"  # as in the connector

_OPTIONS: Final = (
    "path",
    "subscribe",
    "subscribePattern",
    "assign",
    "startingTimestamp",
    "startingOffsetsByTimestamp",
    "startingOffsets",
    "endingTimestamp",
    "endingOffsetsByTimestamp",
    "endingOffsets",
    "startingOffsetsByTimestampStrategy",
    "failOnDataLoss",
    "lossReport",
    "includeHeaders",
    "kafka.isolation.level",
    "minPartitions",
    "maxRecordsPerPartition",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "columns",
    "includeControlRecords",
    "recreatedTopics",
    "pushFilters",
)
_CANONICAL: Final = {name.lower(): name for name in _OPTIONS}

# By topic and partition.
ByPartition: TypeAlias = "dict[TopicPartition, int]"


class Limit(NamedTuple):
    """Where a read starts or ends: `everywhere`, or `each` partition's own limit.

    A limit is an offset, EARLIEST, LATEST, or (`is_time`) a timestamp in ms since 1970.
    """

    for_all: int = EARLIEST
    each: ByPartition | None = None
    is_time: bool = False


class SegmentOptions(NamedTuple):
    """Parsed options."""

    directories: tuple[str, ...]
    topics: frozenset[str] | None
    pattern: re.Pattern[str] | None
    assigned: frozenset[TopicPartition] | None
    start: Limit
    end: Limit
    latest_if_not_found: bool
    fail_on_data_loss: bool
    loss_report: str | None
    is_committed: bool
    includes_control: bool
    min_partitions: int | None
    most_records: int | None
    max_offsets_per_trigger: int | None
    min_offsets_per_trigger: int | None
    max_trigger_delay_ms: int
    restarts_recreated: bool
    pushes_filters: bool

    def wants(self, topic: str, partition: int) -> bool:
        """Return whether to read a partition."""
        if self.assigned is not None:
            return (topic, partition) in self.assigned
        if self.topics is not None:
            return topic in self.topics
        assert self.pattern is not None
        return self.pattern.fullmatch(topic) is not None


def parse_options(raw_options: Mapping[str, str], *, is_stream: bool) -> SegmentOptions:
    """Parse the options of a batch or a stream.

    Raises:
        OptionError: One is missing, unknown or invalid.
    """
    options = _checked_names(raw_options)
    directories = tuple(
        directory.strip() for directory in options.get("path", "").split(",") if directory.strip()
    )
    if not directories:
        raise OptionError("option path is missing: name a log directory")
    topics, pattern, assigned = _chosen(options)
    minimum, maximum = (
        _count(options, "minOffsetsPerTrigger"),
        _count(options, "maxOffsetsPerTrigger"),
    )
    if minimum is not None and maximum is not None and minimum > maximum:
        raise OptionError(
            f"minOffsetsPerTrigger, {minimum}, is greater than maxOffsetsPerTrigger, {maximum}"
        )
    return SegmentOptions(
        directories=directories,
        topics=topics,
        pattern=pattern,
        assigned=assigned,
        start=_limit(options, "starting", LATEST if is_stream else EARLIEST, is_stream=is_stream),
        end=_ending(options, is_stream=is_stream),
        latest_if_not_found=_one_of(
            options, "startingOffsetsByTimestampStrategy", ("error", "latest")
        )
        == "latest",
        fail_on_data_loss=_flag(options, "failOnDataLoss", default=True),
        loss_report=options.get("lossReport"),
        is_committed=_one_of(
            options, "kafka.isolation.level", ("read_uncommitted", "read_committed")
        )
        == "read_committed",
        includes_control=_flag(options, "includeControlRecords", default=False),
        min_partitions=_count(options, "minPartitions"),
        most_records=_count(options, "maxRecordsPerPartition"),
        max_offsets_per_trigger=maximum,
        min_offsets_per_trigger=minimum,
        max_trigger_delay_ms=delay_ms_of(
            "maxTriggerDelay", options.get("maxTriggerDelay", _TRIGGER_DELAY)
        ),
        restarts_recreated=_one_of(options, "recreatedTopics", ("fail", "restart")) == "restart",
        pushes_filters=_flag(options, "pushFilters", default=False),
    )


def parse_columns(raw_options: Mapping[str, str]) -> tuple[tuple[str, ...] | None, bool]:
    """Return the option `columns`, if given, and whether headers are included.

    Raises:
        OptionError: As parse_options.
    """
    options = _checked_names(raw_options)
    names = options.get("columns")
    columns = None if names is None else tuple(column.strip() for column in names.split(","))
    return columns, _flag(options, "includeHeaders", default=False)


def _checked_names(raw_options: Mapping[str, str]) -> dict[str, str]:
    options: dict[str, str] = {}
    for name, value in raw_options.items():
        canonical = _CANONICAL.get(name.lower())
        if canonical is None and name.lower().startswith("kafka."):
            continue  # there is no client
        if canonical is None:
            raise OptionError(f"option {name} is unknown; there are {', '.join(_OPTIONS)}")
        options[canonical] = value
    return options


def _chosen(
    options: dict[str, str],
) -> tuple[frozenset[str] | None, re.Pattern[str] | None, frozenset[TopicPartition] | None]:
    selections = [name for name in ("subscribe", "subscribePattern", "assign") if name in options]
    if len(selections) != 1:
        raise OptionError("give one of the options subscribe, subscribePattern and assign")
    value = options[selections[0]].strip()
    if not value:
        raise OptionError(f"option {selections[0]} is empty")
    if selections[0] == "subscribe":
        return frozenset(topic.strip() for topic in value.split(",") if topic.strip()), None, None
    if selections[0] == "subscribePattern":
        try:
            return None, re.compile(value), None
        except re.error as error:
            raise OptionError(f"option subscribePattern is not a pattern: {error}") from None
    return None, None, frozenset(_assigned(value))


def _assigned(value: str) -> list[TopicPartition]:
    topics = _json(value, "assign", '{"topic": [0, 1]}')
    assigned: list[TopicPartition] = []
    for topic, partitions in topics.items():
        if not isinstance(partitions, list):
            raise OptionError('option assign must be like {"topic": [0, 1]}')
        assigned += ((topic, _integer(partition, "assign")) for partition in partitions)
    return assigned


def _limit(options: dict[str, str], side: str, default: int, *, is_stream: bool) -> Limit:
    """Parse the start or the end: the first given of three options."""
    name = f"{side}Timestamp"
    if name in options:
        return Limit(_integer(options[name], name), is_time=True)
    name = f"{side}OffsetsByTimestamp"
    if name in options:
        return Limit(each=_by_partition(options[name], name), is_time=True)
    name = f"{side}Offsets"
    value = options.get(name)
    if value is None:
        return Limit(default)
    word = value.strip().lower()
    if word in {"earliest", "latest"}:
        offset = EARLIEST if word == "earliest" else LATEST
        _check_special(offset, side, is_stream=is_stream)
        return Limit(offset)
    by_partition = _by_partition(value, name)
    for offset in by_partition.values():
        if offset < EARLIEST:
            raise OptionError(f"option {name}: {offset} is not an offset")
        _check_special(offset, side, is_stream=is_stream)
    return Limit(each=by_partition)


def _check_special(offset: int, side: str, *, is_stream: bool) -> None:
    if side == "starting" and offset == LATEST and not is_stream:
        raise OptionError("a batch cannot start at latest")
    if side == "ending" and offset == EARLIEST:
        raise OptionError("a batch cannot end at earliest")


def _ending(options: dict[str, str], *, is_stream: bool) -> Limit:
    if is_stream:
        ending_options = [name for name in options if name.startswith("ending")]
        if ending_options:
            raise OptionError(f"option {ending_options[0]} is for batches; a stream has no end")
        return Limit(LATEST)
    return _limit(options, "ending", LATEST, is_stream=False)


def _by_partition(value: str, name: str) -> ByPartition:
    example = '{"topic": {"0": 23, "1": -2}}'
    offsets: ByPartition = {}
    for topic, partitions in _json(value, name, example).items():
        if not isinstance(partitions, dict):
            raise OptionError(f"option {name} must be like {example}")
        for partition, number in cast("dict[str, Any]", partitions).items():
            offsets[topic, _integer(partition, name)] = _integer(number, name)
    return offsets


def _json(value: str, name: str, example: str) -> dict[str, Any]:
    try:
        parsed = parse_json(value)
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict):
        raise OptionError(f"option {name} must be like {example}, not {value[:100]}")
    return cast("dict[str, Any]", parsed)


def _integer(value: Any, name: str) -> int:
    try:
        return int(str(value))
    except ValueError:
        raise OptionError(f"option {name}: {value!r} is not a whole number") from None


def _count(options: dict[str, str], name: str) -> int | None:
    if name not in options:
        return None
    number = _integer(options[name], name)
    if number < 1:
        raise OptionError(f"option {name} must be at least 1")
    return number


def _flag(options: dict[str, str], name: str, *, default: bool) -> bool:
    word = options.get(name, str(default)).strip().lower()
    if word not in {"true", "false"}:
        raise OptionError(f"option {name} must be true or false, not {word}")
    return word == "true"


def _one_of(options: dict[str, str], name: str, words: tuple[str, str]) -> str:
    word = options.get(name, words[0]).strip().lower()
    if word not in words:
        raise OptionError(f"option {name} must be {words[0]} or {words[1]}, not {word}")
    return word
