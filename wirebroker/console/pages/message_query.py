"""The form of the messages page, as queries of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.console.records.queries import PLACES, ReadQuery, SearchQuery
from wirebroker.console.view.formats import parsed_time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.console.model.topic_info import TopicInfo

STARTS: Final = {
    "end": "Newest",
    "start": "Oldest",
    "offset": "From offset",
    "time": "From time",
}
LIMITS: Final = (20, 50, 100, 200, 500)
_DEFAULT_LIMIT: Final = 50
_SEARCH_HITS: Final = 500
_MOST_TEXT: Final = 1000
_MOST_DIGITS: Final = 19


class MessageForm(NamedTuple):
    """The values as they were entered, for the form."""

    start: str
    offset: str
    time: str
    until: str
    partition: str
    limit: int
    text: str
    where: str
    header: str
    header_value: str
    jsonpath: str
    is_case_sensitive: bool
    is_committed: bool
    position: str

    @property
    def is_search(self) -> bool:
        """Whether a filter is set."""
        return bool(self.text or self.header or self.header_value or self.jsonpath)

    @property
    def has_filters(self) -> bool:
        """Whether the part of the form with filters is shown open."""
        return self.is_search or bool(self.until) or self.is_committed


def form_of(parameters: Mapping[str, str]) -> MessageForm:
    """Return the values of a request; unknown choices count as the default."""

    def text(name: str) -> str:
        return parameters.get(name, "")[:_MOST_TEXT]

    limit = text("limit")
    start = text("start")
    where = text("where")
    return MessageForm(
        start=start if start in STARTS else "end",
        offset=text("offset").strip(),
        time=text("time").strip(),
        until=text("until").strip(),
        partition=text("partition").strip(),
        limit=int(limit) if limit in map(str, LIMITS) else _DEFAULT_LIMIT,
        text=text("text"),
        where=where if where in PLACES else "any",
        header=text("header").strip(),
        header_value=text("header_value"),
        jsonpath=text("jsonpath").strip(),
        is_case_sensitive=parameters.get("case") == "1",
        is_committed=parameters.get("committed") == "1",
        # Has a number for each partition; the length of the address is bounded.
        position=parameters.get("position", ""),
    )


def read_query(topic: TopicInfo, form: MessageForm) -> ReadQuery:
    """Return the query of one page of records.

    Raises:
        ValueError: A value of the form is wrong; the message is for the viewer.
    """
    return ReadQuery(
        topic=topic.name,
        partitions=_partitions(topic, form.partition),
        start=form.start,
        offset=_offset(form) if form.start == "offset" else 0,
        time_ms=_time(form) if form.start == "time" else 0,
        limit=form.limit,
        is_committed=form.is_committed,
        positions=_positions(form.position),
    )


def search_query(topic: TopicInfo, form: MessageForm) -> SearchQuery:
    """Return the query of a search; with start "end" the whole topic is searched.

    Raises:
        ValueError: A value of the form is wrong; the message is for the viewer.
    """
    query = SearchQuery(
        topic=topic.name,
        partitions=_partitions(topic, form.partition),
        start=form.start if form.start in {"offset", "time"} else "start",
        offset=_offset(form) if form.start == "offset" else 0,
        time_ms=_time(form) if form.start == "time" else 0,
        until_ms=parsed_time(form.until) if form.until else None,
        text=form.text,
        where=form.where,
        header_name=form.header,
        header_value=form.header_value,
        jsonpath=form.jsonpath,
        is_case_sensitive=form.is_case_sensitive,
        is_committed=form.is_committed,
        limit=_SEARCH_HITS,
    )
    query.check()
    return query


def position_text(positions: Mapping[int, int]) -> str:
    """Return positions for an address, such as `0:120,1:98`."""
    return ",".join(f"{partition}:{offset}" for partition, offset in sorted(positions.items()))


def _positions(text: str) -> dict[int, int] | None:
    if not text:
        return None
    positions: dict[int, int] = {}
    for pair in text.split(","):
        partition, _, offset = pair.partition(":")
        positions[_number(partition, "A partition")] = _number(offset, "An offset")
    return positions


def _partitions(topic: TopicInfo, text: str) -> tuple[int, ...] | None:
    if not text:
        return None
    partition = _number(text, "The partition")
    if partition >= topic.partition_count:
        raise ValueError(
            f"There is no partition {partition}: the topic has {topic.partition_count}, from 0 on."
        )
    return (partition,)


def _offset(form: MessageForm) -> int:
    return _number(form.offset, "The offset")


def _time(form: MessageForm) -> int:
    if not form.time:
        raise ValueError("A time is missing: write 2026-11-22T10:00, in UTC.")
    return parsed_time(form.time)


def _number(text: str, noun: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        raise ValueError(f"{noun} must be a number from 0 on, not {text[:40]!r}.")
    return int(text)
