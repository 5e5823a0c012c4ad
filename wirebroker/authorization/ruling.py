"""What a rule makes of a request: refused, or served for what is allowed of it.

A rule looks at a decoded request before its handler does. It answers in the handler's place
(`refusal`), or takes out what is denied and puts its error into the handler's answer (`merge`).

A request may name half a million topics, and an answer may have as many: a rule that asks about
each of them comes in steps, and so does what it makes of the answer, so that whoever runs it can
serve everybody else meanwhile.

A leaf of this room.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.request.request import LargeResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from wirebroker.authorization.access import Asking
    from wirebroker.base.clock import Steps
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.request.needs import Need

Fields = dict[str, Any]
_Element = TypeVar("_Element")

GROUP_DENIED: Final = ErrorCode.GROUP_AUTHORIZATION_FAILED
TOPIC_DENIED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
CLUSTER_DENIED: Final = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
TRANSACTIONAL_ID_DENIED: Final = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
# Kafka's sentences for them.
MESSAGES: Final = {
    GROUP_DENIED: "Group authorization failed.",
    TOPIC_DENIED: "Topic authorization failed.",
    CLUSTER_DENIED: "Cluster authorization failed.",
    TRANSACTIONAL_ID_DENIED: "The transactional id authorization failed.",
}


class AskedRequest(NamedTuple):
    """A request, as a rule sees it."""

    asking: Asking
    image: ClusterImage
    version: int
    body: Any  # decoded; a rule may take elements out


# Makes of the handler's answer the client's; in steps, where that may take long.
Merge: TypeAlias = "Callable[[Any], Mapping[str, Any] | Steps[Mapping[str, Any]]]"


class Ruling(NamedTuple):
    """What came of it; nothing: the request is served as it is."""

    refusal: Mapping[str, Any] | None = None
    merge: Merge | None = None

    def merged(self, answer: Any) -> Steps[Mapping[str, Any]]:
        """Return the client's answer, in steps."""
        whole: Mapping[str, Any] | Steps[Mapping[str, Any]] = (
            answer if self.merge is None else self.merge(answer)
        )
        return (yield from whole) if isinstance(whole, Generator) else whole


SERVED: Final = Ruling()
Rule: TypeAlias = "Callable[[AskedRequest], Ruling | Steps[Ruling]]"
# Elements that are asked about between two steps: 1 ms where all of them are denied.
STEP: Final = 64


def refused(error: ErrorCode, **fields: Any) -> Ruling:
    """Return the ruling that answers nothing but an error."""
    return Ruling({"error_code": int(error), **fields})


def denied(error: ErrorCode) -> KafkaError:
    """Return the error as handlers and controllers raise it."""
    return KafkaError(error, MESSAGES[error])


def denied_resource(resource: Any, error: ErrorCode) -> Fields:
    """Return the result of a resource whose configs are not this principal's."""
    return {
        "error_code": int(error),
        "error_message": MESSAGES[error],
        "resource_type": resource.resource_type,
        "resource_name": resource.resource_name,
    }


def split(
    asking: Asking, need: Need, elements: Iterable[_Element], name_of: Callable[[_Element], str]
) -> Steps[tuple[list[_Element], list[_Element]]]:
    """Return the elements whose resources are allowed, and those that are not; in steps."""
    verdicts: dict[str, bool] = {}
    allowed: list[_Element] = []
    others: list[_Element] = []
    for count, element in enumerate(elements, 1):
        name = name_of(element)
        verdict = verdicts.get(name)
        if verdict is None:
            verdict = verdicts[name] = asking.may(need, name)
        (allowed if verdict else others).append(element)
        if count % STEP == 0:
            yield
    return allowed, others


def adding(field: str, elements: Sequence[Mapping[str, Any]], *, is_first: bool = False) -> Ruling:
    """Return the ruling that adds elements to an array of the answer.

    Args:
        field: The array.
        elements: What is added; nothing is no change.
        is_first: Whether they stand before what the handler answers.
    """
    if not elements:
        return SERVED

    def merge(answer: Any) -> Mapping[str, Any]:
        there = answer.get(field) or ()
        whole = [*elements, *there] if is_first else [*there, *elements]
        return with_field(answer, field, whole)

    return Ruling(merge=merge)


def keeping(field: str, is_shown: Callable[[Any], bool]) -> Ruling:
    """Return the ruling that leaves out elements of an array of the answer."""

    def merge(answer: Any) -> Steps[Mapping[str, Any]]:
        shown = yield from kept(answer.get(field) or (), is_shown)
        return with_field(answer, field, shown)

    return Ruling(merge=merge)


def kept(
    elements: Iterable[_Element], is_kept: Callable[[_Element], bool]
) -> Steps[list[_Element]]:
    """Return the elements that are kept; in steps."""
    found: list[_Element] = []
    for count, each in enumerate(elements, 1):
        if is_kept(each):
            found.append(each)
        if count % STEP == 0:
            yield
    return found


def once(names: Iterable[str]) -> Steps[list[str]]:
    """Return names that may be repeated, each once; in steps."""
    found: dict[str, None] = {}
    for count, each in enumerate(names, 1):
        found[each] = None
        if count % STEP == 0:
            yield
    return list(found)


def told(
    elements: Iterable[_Element], telling: Callable[[_Element], Fields]
) -> Steps[list[Fields]]:
    """Return what is told of each element; in steps."""
    found: list[Fields] = []
    for count, each in enumerate(elements, 1):
        found.append(telling(each))
        if count % STEP == 0:
            yield
    return found


def with_field(answer: Mapping[str, Any], field: str, value: Any) -> Mapping[str, Any]:
    """Return an answer with another value; what is large stays so."""
    fields = {**answer, field: value}
    return LargeResponse(fields) if isinstance(answer, LargeResponse) else fields


def of_cluster(need: Need, **fields: Any) -> Rule:
    """Return the rule that asks for one thing of the cluster; `fields` go with the refusal."""
    return lambda asked: SERVED if asked.asking.may(need) else refused(CLUSTER_DENIED, **fields)


def failed_topics(
    topics: Iterable[Any],
    head: Callable[[Any], Fields],
    indexes: Callable[[Any], Iterable[int]],
    same: Mapping[str, Any],
    *,
    field: str = "partitions",
    index_field: str = "partition_index",
) -> Steps[list[Fields]]:
    """Return topics whose partitions all fail alike; in steps, as a request may name a million.

    Args:
        topics: Of the request.
        head: What is told of a topic besides.
        indexes: The partitions that the request names of it.
        same: What is told of each of them besides its index.
        field: Where they stand in the topic's answer.
        index_field: Where its index stands in a partition's.
    """
    failed: list[Fields] = []
    count = 0
    for topic in topics:
        partitions: list[Fields] = []
        for index in indexes(topic):
            partitions.append({index_field: index, **same})
            count += 1
            if count % STEP == 0:
                yield
        failed.append({**head(topic), field: partitions})
        count += 1
        if count % STEP == 0:
            yield
    return failed


def indexes_of(topic: Any) -> Iterable[int]:
    """Return the partitions of a topic that are named as in most requests."""
    return (each.partition_index for each in topic.partitions)


def named(topic: Any) -> Fields:
    """Return what is told of a topic in most answers besides its partitions."""
    return {"name": topic.name}
