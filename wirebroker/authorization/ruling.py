"""The results of rules, and helpers for rules.

A rule sees a decoded request before its handler. It refuses the request (`refusal`), or removes
denied elements and adds their errors to the handler's response (`merge`). A request or response may
hold half a million topics, so rules, merges and helpers run in steps.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

from wirebroker.codecs.acls import Resource
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.permissions import DESCRIBE_CLUSTER
from wirebroker.request.request import LargeResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from wirebroker.authorization.access import RequestAccess
    from wirebroker.base.clock import Steps
    from wirebroker.codecs.permissions import Permission
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage

Fields = dict[str, Any]
_Element = TypeVar("_Element")

GROUP_DENIED: Final = ErrorCode.GROUP_AUTHORIZATION_FAILED
TOPIC_DENIED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
CLUSTER_DENIED: Final = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
TRANSACTIONAL_ID_DENIED: Final = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
# Kafka's messages.
MESSAGES: Final = {
    GROUP_DENIED: "Group authorization failed.",
    TOPIC_DENIED: "Topic authorization failed.",
    CLUSTER_DENIED: "Cluster authorization failed.",
    TRANSACTIONAL_ID_DENIED: "The transactional id authorization failed.",
    ErrorCode.UNKNOWN_SERVER_ERROR: "The ACLs of this controller are not loaded yet.",
}


class CheckedRequest(NamedTuple):
    """A request as rules see it; they may remove elements of `body`."""

    access: RequestAccess
    image: ClusterImage
    version: int
    body: Any


Merge: TypeAlias = "Callable[[Any], Mapping[str, Any] | Steps[Mapping[str, Any]]]"


class Ruling(NamedTuple):
    """The result of a rule; without fields the request is served unchanged."""

    refusal: Mapping[str, Any] | None = None
    merge: Merge | None = None

    def merged(self, answer: Any) -> Steps[Mapping[str, Any]]:
        """Return the client's response."""
        merged: Mapping[str, Any] | Steps[Mapping[str, Any]] = (
            answer if self.merge is None else self.merge(answer)
        )
        return (yield from merged) if isinstance(merged, Generator) else merged


SERVED: Final = Ruling()
Rule: TypeAlias = "Callable[[CheckedRequest], Ruling | Steps[Ruling]]"
# Elements between two steps: 1 ms if all are denied.
STEP: Final = 64


def refused(error: ErrorCode, **fields: Any) -> Ruling:
    """Return a refusal."""
    return Ruling({"error_code": int(error), **fields})


def denied(error: ErrorCode) -> KafkaError:
    """Return the exception to raise."""
    return KafkaError(error, MESSAGES[error])


def denied_resource(resource: Any, error: ErrorCode) -> Fields:
    """Return the result of a denied config resource."""
    return {
        "error_code": int(error),
        "error_message": MESSAGES[error],
        "resource_type": resource.resource_type,
        "resource_name": resource.resource_name,
    }


def split(
    access: RequestAccess,
    need: Permission,
    elements: Iterable[_Element],
    name_of: Callable[[_Element], str],
) -> Steps[tuple[list[_Element], list[_Element]]]:
    """Return the elements with and without the permission."""
    verdicts: dict[str, bool] = {}
    allowed: list[_Element] = []
    denied_elements: list[_Element] = []
    for count, element in enumerate(elements, 1):
        name = name_of(element)
        verdict = verdicts.get(name)
        if verdict is None:
            verdict = verdicts[name] = access.may(need, name)
        (allowed if verdict else denied_elements).append(element)
        if count % STEP == 0:
            yield
    return allowed, denied_elements


def adding(field: str, elements: Sequence[Mapping[str, Any]], *, is_first: bool = False) -> Ruling:
    """Return a ruling that adds elements to an array of the response, before or after its own."""
    if not elements:
        return SERVED

    def merge(answer: Any) -> Mapping[str, Any]:
        existing = answer.get(field) or ()
        combined = [*elements, *existing] if is_first else [*existing, *elements]
        return with_field(answer, field, combined)

    return Ruling(merge=merge)


def filtering(field: str, is_shown: Callable[[Any], bool]) -> Ruling:
    """Return a ruling that filters an array of the response."""

    def merge(answer: Any) -> Steps[Mapping[str, Any]]:
        visible = yield from kept(answer.get(field) or (), is_shown)
        return with_field(answer, field, visible)

    return Ruling(merge=merge)


def kept(
    elements: Iterable[_Element], is_kept: Callable[[_Element], bool]
) -> Steps[list[_Element]]:
    """Return the elements that pass a test."""
    retained: list[_Element] = []
    for count, element in enumerate(elements, 1):
        if is_kept(element):
            retained.append(element)
        if count % STEP == 0:
            yield
    return retained


def once(names: Iterable[str]) -> Steps[list[str]]:
    """Return names without repetitions."""
    unique: dict[str, None] = {}
    for count, name in enumerate(names, 1):
        unique[name] = None
        if count % STEP == 0:
            yield
    return list(unique)


def told(
    elements: Iterable[_Element], result_of: Callable[[_Element], Fields]
) -> Steps[list[Fields]]:
    """Return a result for each element."""
    results: list[Fields] = []
    for count, element in enumerate(elements, 1):
        results.append(result_of(element))
        if count % STEP == 0:
            yield
    return results


def with_field(answer: Mapping[str, Any], field: str, value: Any) -> Mapping[str, Any]:
    """Return a response with another value; a LargeResponse stays one."""
    fields = {**answer, field: value}
    return LargeResponse(fields) if isinstance(answer, LargeResponse) else fields


def of_cluster(need: Permission, **fields: Any) -> Rule:
    """Return a rule that requires a permission on the cluster; `fields` complete the refusal."""

    def rule(request: CheckedRequest) -> Ruling:
        if request.access.may(need):
            return SERVED
        error = cluster_denial(request.access)
        return refused(error, **(fields if error is CLUSTER_DENIED else {}))

    return rule


def cluster_operations(request: CheckedRequest) -> Ruling:
    """Return the client's operations on the cluster; none without DESCRIBE."""
    access = request.access
    if not request.body.include_cluster_authorized_operations:
        return SERVED

    def merge(answer: Mapping[str, Any]) -> Mapping[str, Any]:
        if answer.get("error_code") or "cluster_authorized_operations" not in answer:
            return answer
        operations = access.operations(Resource.CLUSTER) if access.may(DESCRIBE_CLUSTER) else 0
        return with_field(answer, "cluster_authorized_operations", operations)

    return Ruling(merge=merge)


def cluster_denial(access: RequestAccess) -> ErrorCode:
    """Return the error of a denied permission on the cluster.

    Before the ACLs are loaded, it is UNKNOWN_SERVER_ERROR (Kafka: AuthorizerNotReadyException).
    """
    return CLUSTER_DENIED if access.is_final else ErrorCode.UNKNOWN_SERVER_ERROR


def failed_topics(
    topics: Iterable[Any],
    head: Callable[[Any], Fields],
    indexes: Callable[[Any], Iterable[int]],
    error_fields: Mapping[str, Any],
    *,
    field: str = "partitions",
    index_field: str = "partition_index",
) -> Steps[list[Fields]]:
    """Return topics whose partitions all fail with the same error.

    `head` returns a topic's fields besides the partitions, `indexes` the partitions' indexes.
    """
    failed: list[Fields] = []
    count = 0
    for topic in topics:
        partitions: list[Fields] = []
        for index in indexes(topic):
            partitions.append({index_field: index, **error_fields})
            count += 1
            if count % STEP == 0:
                yield
        failed.append({**head(topic), field: partitions})
        count += 1
        if count % STEP == 0:
            yield
    return failed


def indexes_of(topic: Any) -> Iterable[int]:
    """Return a topic's partition indexes, in the form of most requests."""
    return (partition.partition_index for partition in topic.partitions)


def named(topic: Any) -> Fields:
    """Return a topic's name, in the form of most responses."""
    return {"name": topic.name}
