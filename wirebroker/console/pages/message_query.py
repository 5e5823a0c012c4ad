"""The form of the messages page, as queries of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.console.records.queries import PLACES, ReadQuery, SearchQuery
from wirebroker.console.records.record_filter import filter_of
from wirebroker.console.view.formats import parsed_time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.console.model.topic_info import TopicInfo
    from wirebroker.console.records.record_filter import RecordFilter

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
        """Whether a filter is set that only a search applies; *Until* also ends a page."""
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
        until_ms=_until(form),
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
        until_ms=_until(form),
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


def tail_query(topic: TopicInfo, form: MessageForm) -> tuple[ReadQuery, RecordFilter | None]:
    """Return the query of a live tail, and its filters.

    Raises:
        ValueError: A value of the form is wrong; the message is for the viewer.
    """
    if form.until:
        raise ValueError("A live tail has no end: leave Until empty.")
    return read_query(topic, form), filter_of(search_query(topic, form))


def unused_values(form: MessageForm, mode: str) -> tuple[str, ...]:
    """Return a sentence on each value of the form that page, search or tail does not use."""
    if mode == "search":
        bound = f"A search ends at {_SEARCH_HITS} hits; “Records” does not apply."
        if form.start == "end":
            start = f"A search begins at the oldest record; “{STARTS['end']}” does not apply."
            return bound, start
        return (bound,)
    if mode == "tail" and form.start != "end":
        return (f"A live tail begins at the end: “{STARTS[form.start]}” does not apply.",)
    return ()


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


def _until(form: MessageForm) -> int | None:
    return parsed_time(form.until) if form.until else None


def _number(text: str, noun: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        raise ValueError(f"{noun} must be a number from 0 on, not {text[:40]!r}.")
    return int(text)
