"""The page "may a principal do something": the answer, and the ACL that decides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.client.security.acls import ANY, CLUSTER_NAME, EVERY_HOST, RESOURCE_TYPES
from wirebroker.console.access.acl_decisions import (
    AccessOutcome,
    AccessQuestion,
    acl_decisions,
)
from wirebroker.console.access.acl_effects import operations_on
from wirebroker.console.access.brokers_access import brokers_access
from wirebroker.console.changes.kinds.acl_fields import rule_text
from wirebroker.console.pages.page import Answer, asked, collector_of, page

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from wirebroker.console.access.acl_decisions import AccessAnswer, AclDecisions
    from wirebroker.console.access.brokers_access import BrokersAccess

_TYPES: Final = tuple(word for word in RESOURCE_TYPES if word != ANY)
_OPERATIONS: Final = tuple(dict.fromkeys(word for kind in _TYPES for word in operations_on(kind)))
_MOST_CHARACTERS: Final = 1000


def _question(parameters: Mapping[str, str]) -> AccessQuestion:
    """Return the question of a form; wrong choices count as the first ones."""

    def text(name: str) -> str:
        return parameters.get(name, "").strip()[:_MOST_CHARACTERS]

    kind = text("resource_type") if text("resource_type") in _TYPES else _TYPES[0]
    operation = text("operation") if text("operation") in _OPERATIONS else _OPERATIONS[0]
    name = CLUSTER_NAME if kind == "cluster" else text("resource_name")
    return AccessQuestion(text("principal"), text("host") or EVERY_HOST, operation, kind, name)


def _fault(question: AccessQuestion) -> str | None:
    """Return why a question cannot be answered, in a sentence."""
    kind, colon, name = question.principal.partition(":")
    if not (kind and colon and name):
        return f"{question.principal!r} is not a principal: write User:NAME"
    if not question.resource_name:
        return f"the name of the {question.resource_type.replace('_', ' ')} is missing"
    known = operations_on(question.resource_type)
    if question.operation not in known:
        kind = question.resource_type.replace("_", " ")
        return f"a {kind} has no operation {question.operation}, only {', '.join(known)}"
    return None


def _notes(answer: AccessAnswer, decisions: AclDecisions, brokers: BrokersAccess) -> list[str]:
    notes: list[str] = []
    if brokers.is_standard is False:
        notes.append(
            "the brokers use another authorizer, which may decide otherwise: authorizer.class.name"
        )
    if brokers.super_users is None and answer.outcome is not AccessOutcome.ALLOWED:
        notes.append("the brokers do not show super.users: these principals may do everything")
    if decisions.unknown_count:
        notes.append(f"ACLs of a newer Kafka are not considered: {decisions.unknown_count}")
    return notes


async def acl_check(request: Request) -> Response:
    """Show whether a principal may do something, by the ACLs of the cluster."""
    collector = collector_of(request)
    question = _question(request.query_params)
    is_asked = "principal" in request.query_params
    fault = _fault(question) if is_asked else None
    decisions: Answer[AclDecisions] = Answer(None, fault)
    brokers: Answer[BrokersAccess] = Answer(None, None)
    if is_asked and fault is None:
        decisions = await asked(acl_decisions(collector))
        brokers = await asked(brokers_access(collector))
    answer: AccessAnswer | None = None
    notes: list[str] = []
    if decisions.value is not None and brokers.value is not None:
        answer = decisions.value.decide(question)
        notes = _notes(answer, decisions.value, brokers.value)
    return page(
        request,
        "acl_check.html",
        section="acls",
        form=question._replace(host="" if question.host == EVERY_HOST else question.host),
        question=question,
        operations=_OPERATIONS,
        resource_types=_TYPES,
        answer=answer,
        notes=notes,
        failure=decisions.failure or brokers.failure,
        rule_text=rule_text,
    )
