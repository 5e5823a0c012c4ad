"""The table of all requests that the controller decides, filled by the modules of the operations.

Source: Kafka's ControllerApis; the error responses of its request classes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from wirebroker.base.clock import Steps, collected
from wirebroker.codecs.permissions import CLUSTER_ACTION, Permission
from wirebroker.coordinator.operation import ControllerResult, Operation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from wirebroker.codecs.api_keys import ApiKey
    from wirebroker.codecs.errors import KafkaError
    from wirebroker.coordinator.controller.requests.request import Case, ControllerRequest

Body = dict[str, Any]
Begin: TypeAlias = "Callable[[Case], Operation[Body]]"
Refuse: TypeAlias = "Callable[[ControllerRequest, KafkaError], Steps[Body]]"


class Declaration(NamedTuple):
    """A request that the controller decides.

    Attributes:
        begin: Begins the operation, which may raise KafkaError for the whole request; None for
            requests about the quorum, which its replicas decide (coordinator/raft).
        permissions: Those that the request may require. A rule of
            authorization/controller_rules.py checks them; without a rule there is one, which is
            required. Empty: the operation decides.
        refuse: Makes the response to a request that fails as a whole, in steps.
        subjects: Array fields of a request with `timeout_ms`. If that is not positive, the request
            is refused with REQUEST_TIMED_OUT, unless all of them are empty.
        is_forwarded: Whether clients send it to brokers, which forward it.
        is_forwardable: Whether an Envelope may contain it.
    """

    begin: Begin | None
    permissions: tuple[Permission, ...]
    refuse: Refuse
    subjects: tuple[str, ...]
    is_forwarded: bool
    is_forwardable: bool


OPERATIONS: Final[dict[ApiKey, Declaration]] = {}


def declare(
    key: ApiKey,
    begin: Begin | None,
    *,
    permissions: tuple[Permission, ...],
    refuse: Refuse | None = None,
    subjects: tuple[str, ...] = (),
) -> None:
    """Declare a client's request; see Declaration."""
    refuse = refuse or refused
    _add(
        key,
        Declaration(begin, permissions, refuse, subjects, is_forwarded=True, is_forwardable=True),
    )


def declare_of_brokers(
    key: ApiKey, begin: Begin, *, refuse: Refuse | None = None, is_forwardable: bool = False
) -> None:
    """Declare a request that only brokers and controllers send."""
    permissions, refuse = (CLUSTER_ACTION,), refuse or refused
    _add(
        key,
        Declaration(
            begin, permissions, refuse, (), is_forwarded=False, is_forwardable=is_forwardable
        ),
    )


def _add(key: ApiKey, declaration: Declaration) -> None:
    assert key not in OPERATIONS, f"{key.name} is declared twice"
    OPERATIONS[key] = declaration


def refusal(request: ControllerRequest, error: KafkaError) -> Steps[Body]:
    """Return the response to a request that fails as a whole, in steps."""
    return (yield from OPERATIONS[request.key].refuse(request, error))


def has_no_time(request: ControllerRequest) -> bool:
    """Return whether `timeout_ms` is not positive although the request names subjects."""
    body = request.body
    subjects = OPERATIONS[request.key].subjects
    if not subjects or body.timeout_ms > 0:
        return False
    # None means everything.
    return any(getattr(body, field) is None or getattr(body, field) for field in subjects)


def as_field(field: str, operation: Operation[list[Body]]) -> Operation[Body]:
    """Return an operation whose response has the results in one field."""
    result = yield from operation
    return ControllerResult({field: result.response}, result.records)


def failure(error: KafkaError) -> Body:
    """Return the fields of an error."""
    return {"error_code": int(error.code), "error_message": error.message}


def refused(request: ControllerRequest, error: KafkaError) -> Steps[Body]:
    """Return an error code alone."""
    del request
    yield
    return {"error_code": int(error.code)}


def refused_with_message(request: ControllerRequest, error: KafkaError) -> Steps[Body]:
    """Return an error code and a message."""
    del request
    yield
    return failure(error)


def refused_each(field: str, elements_of: Callable[[Any], Iterable[Body]]) -> Refuse:
    """Return a function that repeats an error for each element in one field."""

    def refuse(request: ControllerRequest, error: KafkaError) -> Steps[Body]:
        fields = failure(error)
        elements = ({**element, **fields} for element in elements_of(request.body))
        return {field: (yield from collected(elements))}

    return refuse
