"""Subscriptions by regular expression: which expressions have to be resolved, and the results.

Topics are searched outside the shard (an effect): a search of all topics of a large cluster takes
too long for one operation. A group's expressions are resolved together, at most every ten seconds:
when one is new, when topics were created, and at an interval.

Source: Kafka's GroupMetadataManager.maybeUpdateRegularExpressions, handleRegularExpressionsResult.
"""

from __future__ import annotations

import logging
from collections import Counter
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.base.log_bound import about_group
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.groups.consumer.consumer_group import ConsumerGroup
from wirebroker.coordinator.groups.consumer.consumer_records import (
    epoch_record,
    regex_record_in_steps,
    regex_tombstone,
)
from wirebroker.coordinator.groups.consumer.subscriptions import NO_TOPICS, ResolvedRegex
from wirebroker.coordinator.groups.consumer.topic_regex import compiled
from wirebroker.coordinator.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.base.clock import Steps
    from wirebroker.codecs.group_records import KnownRecord
    from wirebroker.coordinator.groups.consumer.consumer_member import ConsumerMember
    from wirebroker.coordinator.groups.serving_shard import ServingShard
    from wirebroker.coordinator.outcome import Moment, Token

logger = logging.getLogger(__name__)

_SHORTEST_INTERVAL_MS: Final = 10_000
MOST_REGEXES: Final = 100
_NEVER: Final = ResolvedRegex(NO_TOPICS, version=0, timestamp_ms=-(2**63))


class ResolveRegexes(NamedTuple):
    """Effect: search the topics for a group's regular expressions, then call `install`.

    Attributes:
        context: The member whose right to describe topics counts.
    """

    group_id: str
    regexes: tuple[str, ...]
    context: Any


class RegexChange(Enum):
    """How a heartbeat changes a member's regular expression."""

    NONE = 0
    CHANGED = 1
    # Its topics are known.
    RESOLVED = 2


def change_of(
    group: ConsumerGroup, old: ConsumerMember, new: ConsumerMember, outcome: Outcome
) -> RegexChange:
    """Add the records of a changed expression; return how it has changed.

    Raises:
        KafkaError: INVALID_REGULAR_EXPRESSION; INVALID_REQUEST: the group has too many.
    """
    before, after = old.topic_regex, new.topic_regex
    if before == after:
        return RegexChange.NONE
    counts = group.subscriptions.regexes
    if before and counts.get(before) == 1:
        outcome.records.append(regex_tombstone(group.group_id, before))
    if not after:
        return RegexChange.RESOLVED
    if not counts.get(after):
        _check_count(counts, before)
        compiled(after)
    elif after in group.subscriptions.resolved:
        return RegexChange.RESOLVED
    return RegexChange.CHANGED


def _check_count(counts: Mapping[str, int], replaced: str) -> None:
    """Refuse a further expression of a group with many; each is matched with all topics.

    Raises:
        KafkaError: INVALID_REQUEST.
    """
    if len(counts) - (counts.get(replaced) == 1) >= MOST_REGEXES:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"The members of a group can use at most {MOST_REGEXES} different regular expressions.",
        )


def due_search(
    shard: ServingShard,
    group: ConsumerGroup,
    old: ConsumerMember,
    new: ConsumerMember,
    wall_ms: int,
) -> tuple[str, ...]:
    """Return the expressions to resolve now, for a member that has changed or only stays."""
    counts = group.subscriptions.regexes
    is_new = new.topic_regex not in {"", old.topic_regex} and not counts.get(new.topic_regex)
    if (not is_new and not counts) or group.is_resolving:
        return ()
    # All of a group are resolved together.
    last = next(iter(group.subscriptions.resolved.values()), _NEVER)
    if wall_ms <= last.timestamp_ms + _SHORTEST_INTERVAL_MS:
        return ()
    regexes = Counter(counts)
    if old.topic_regex in regexes:
        regexes[old.topic_regex] -= 1
    if new.topic_regex:
        regexes[new.topic_regex] += 1
    wanted = tuple(regex for regex, count in regexes.items() if count > 0)
    is_due = (
        is_new
        or len(wanted) != len(group.subscriptions.resolved)
        or last.version < shard.new_topics_offset
        or wall_ms > last.timestamp_ms + shard.settings.consumer_regex_refresh_interval_ms
    )
    return wanted if is_due else ()


def records_of(group_id: str, found: Mapping[str, ResolvedRegex]) -> Steps[dict[str, KnownRecord]]:
    """Return the records of a group's expressions, for `install`."""
    records: dict[str, KnownRecord] = {}
    for regex, resolved in found.items():
        records[regex] = yield from regex_record_in_steps(group_id, regex, resolved)
        yield
    return records


def install(
    shard: ServingShard,
    group_id: str,
    found: Mapping[str, KnownRecord],
    token: Token,
    now: Moment,
) -> Outcome:
    """Append the records of a group's expressions; a change raises its epoch."""
    del token, now
    # Many topics may exceed a batch; the epoch is last, so a crash in between is noticed.
    outcome = Outcome(is_atomic=False)
    group = shard.groups.get(group_id)
    if not isinstance(group, ConsumerGroup):
        return outcome
    subscriptions = group.subscriptions
    wanted: dict[str, ResolvedRegex] = {}
    has_changed = False
    for regex, record in found.items():
        if regex in subscriptions.regexes:
            result: ResolvedRegex = record.body
            wanted[regex] = result
            known = subscriptions.resolved.get(regex, _NEVER)
            has_changed = has_changed or known.topics != result.topics
            outcome.records.append(record)
    topics = subscriptions.topics(resolved=wanted)
    metadata_hash = subscriptions.hash_of(topics, shard.topic_hashes)
    if has_changed or metadata_hash != group.metadata_hash:
        outcome.records.append(epoch_record(group_id, group.epoch + 1, metadata_hash))
        logger.info(
            "group %s is in epoch %d: other topics match",
            group_id,
            group.epoch + 1,
            extra=about_group(group_id),
        )
    return outcome


def abandon(shard: ServingShard, group_id: str) -> None:
    """Allow the next search."""
    group = shard.groups.get(group_id)
    if isinstance(group, ConsumerGroup):
        group.is_resolving = False
