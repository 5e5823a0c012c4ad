"""Options of a read, with the Kafka connector's names.

    path                                  log directories, separated by commas, or copies
    subscribe | subscribePattern | assign one of them, as in the connector
    startingTimestamp, startingOffsetsByTimestamp, startingOffsets      the first one given counts
    endingTimestamp, endingOffsetsByTimestamp, endingOffsets            batches only
    startingOffsetsByTimestampStrategy    error (default) | latest
    failOnDataLoss                        true (default) | false
    includeHeaders                        false (default) | true
    kafka.isolation.level                 read_uncommitted (default) | read_committed
    minPartitions, maxRecordsPerPartition how a batch is split into tasks
    maxOffsetsPerTrigger                  streams only, as the next two
    minOffsetsPerTrigger                  new offsets for which a micro-batch waits,
    maxTriggerDelay                       at most for this time (15m)

and additional ones

    columns                               the columns to read, separated by commas
    lossReport                            a folder for reports of what failOnDataLoss=false skips
    includeControlRecords                 false (default) | true: also transaction markers
    recreatedTopics                       fail (default) | restart: streams read a recreated topic
                                          from its beginning
    pushFilters                           false (default) | true: filters limit what batches read;
                                          needs spark.sql.python.filterPushdown.enabled=true

Other options that begin with `kafka.` have no effect. Names ignore case, as in Spark.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast

from wirebroker.codecs.json_text import parse_json
from wirebroker.segments.errors import OptionError
from wirebroker.segments.trigger_limits import delay_ms_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.storage.checkpoints import TopicPartition

EARLIEST: Final = -2
LATEST: Final = -1
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

# By topic and partition: an offset, EARLIEST, LATEST, or a timestamp.
ByPartition: TypeAlias = "dict[TopicPartition, int]"


class Limit(NamedTuple):
    """Where a read starts or ends.

    Attributes:
        everywhere: EARLIEST, LATEST, or a timestamp, for all partitions.
        each: For each partition instead.
        is_time: Whether they are timestamps, in ms since 1970.
    """

    everywhere: int = EARLIEST
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


def parse_options(given: Mapping[str, str], *, is_stream: bool) -> SegmentOptions:
    """Parse the options of a batch or a stream.

    Raises:
        OptionError: One is missing, unknown or invalid; the message says what is valid.
    """
    options = _known(given)
    directories = tuple(each.strip() for each in options.get("path", "").split(",") if each.strip())
    if not directories:
        raise OptionError("option path is missing: name a log directory")
    topics, pattern, assigned = _chosen(options)
    fewest, most = _count(options, "minOffsetsPerTrigger"), _count(options, "maxOffsetsPerTrigger")
    if fewest is not None and most is not None and fewest > most:
        raise OptionError(f"minOffsetsPerTrigger, {fewest}, is over maxOffsetsPerTrigger, {most}")
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
        max_offsets_per_trigger=most,
        min_offsets_per_trigger=fewest,
        max_trigger_delay_ms=delay_ms_of(
            "maxTriggerDelay", options.get("maxTriggerDelay", _TRIGGER_DELAY)
        ),
        restarts_recreated=_one_of(options, "recreatedTopics", ("fail", "restart")) == "restart",
        pushes_filters=_flag(options, "pushFilters", default=False),
    )


def parse_columns(given: Mapping[str, str]) -> tuple[tuple[str, ...] | None, bool]:
    """Return the option `columns`, if given, and whether headers are included.

    Raises:
        OptionError: As parse_options.
    """
    options = _known(given)
    names = options.get("columns")
    columns = None if names is None else tuple(each.strip() for each in names.split(","))
    return columns, _flag(options, "includeHeaders", default=False)


def _known(given: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in given.items():
        canonical = _CANONICAL.get(name.lower())
        if canonical is None and name.lower().startswith("kafka."):
            continue  # there is no client
        if canonical is None:
            raise OptionError(f"option {name} is not known; there are {', '.join(_OPTIONS)}")
        found[canonical] = value
    return found


def _chosen(
    options: dict[str, str],
) -> tuple[frozenset[str] | None, re.Pattern[str] | None, frozenset[TopicPartition] | None]:
    ways = [name for name in ("subscribe", "subscribePattern", "assign") if name in options]
    if len(ways) != 1:
        raise OptionError("give one of the options subscribe, subscribePattern and assign")
    value = options[ways[0]].strip()
    if not value:
        raise OptionError(f"option {ways[0]} is empty")
    if ways[0] == "subscribe":
        return frozenset(each.strip() for each in value.split(",") if each.strip()), None, None
    if ways[0] == "subscribePattern":
        try:
            return None, re.compile(value), None
        except re.error as error:
            raise OptionError(f"option subscribePattern is no pattern: {error}") from None
    return None, None, frozenset(_assigned(value))


def _assigned(value: str) -> list[TopicPartition]:
    found = _json(value, "assign", '{"topic": [0, 1]}')
    wanted: list[TopicPartition] = []
    for topic, partitions in found.items():
        if not isinstance(partitions, list):
            raise OptionError('option assign is to be like {"topic": [0, 1]}')
        wanted += ((topic, _whole(each, "assign")) for each in partitions)
    return wanted


def _limit(options: dict[str, str], side: str, default: int, *, is_stream: bool) -> Limit:
    """Parse the start or the end: the first given of three options."""
    name = f"{side}Timestamp"
    if name in options:
        return Limit(_whole(options[name], name), is_time=True)
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
    each = _by_partition(value, name)
    for offset in each.values():
        if offset < EARLIEST:
            raise OptionError(f"option {name}: {offset} is no offset")
        _check_special(offset, side, is_stream=is_stream)
    return Limit(each=each)


def _check_special(offset: int, side: str, *, is_stream: bool) -> None:
    if side == "starting" and offset == LATEST and not is_stream:
        raise OptionError("a batch cannot start at latest")
    if side == "ending" and offset == EARLIEST:
        raise OptionError("a batch cannot end at earliest")


def _ending(options: dict[str, str], *, is_stream: bool) -> Limit:
    if is_stream:
        given = [name for name in options if name.startswith("ending")]
        if given:
            raise OptionError(f"option {given[0]} is for batches; a stream has no end")
        return Limit(LATEST)
    return _limit(options, "ending", LATEST, is_stream=False)


def _by_partition(value: str, name: str) -> ByPartition:
    example = '{"topic": {"0": 23, "1": -2}}'
    found: ByPartition = {}
    for topic, partitions in _json(value, name, example).items():
        if not isinstance(partitions, dict):
            raise OptionError(f"option {name} is to be like {example}")
        for partition, number in cast("dict[str, Any]", partitions).items():
            found[topic, _whole(partition, name)] = _whole(number, name)
    return found


def _json(value: str, name: str, example: str) -> dict[str, Any]:
    try:
        found = parse_json(value)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise OptionError(f"option {name} is to be like {example}, not {value[:100]}")
    return cast("dict[str, Any]", found)


def _whole(value: Any, name: str) -> int:
    try:
        return int(str(value))
    except ValueError:
        raise OptionError(f"option {name}: {value!r} is no whole number") from None


def _count(options: dict[str, str], name: str) -> int | None:
    if name not in options:
        return None
    number = _whole(options[name], name)
    if number < 1:
        raise OptionError(f"option {name} is to be at least 1")
    return number


def _flag(options: dict[str, str], name: str, *, default: bool) -> bool:
    word = options.get(name, str(default)).strip().lower()
    if word not in {"true", "false"}:
        raise OptionError(f"option {name} is true or false, not {word}")
    return word == "true"


def _one_of(options: dict[str, str], name: str, words: tuple[str, str]) -> str:
    word = options.get(name, words[0]).strip().lower()
    if word not in words:
        raise OptionError(f"option {name} is {words[0]} or {words[1]}, not {word}")
    return word
