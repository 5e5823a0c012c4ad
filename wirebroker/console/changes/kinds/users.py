"""Changes of SCRAM users."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.base.text import counted, few_of
from wirebroker.client.errors import ClientError, did_you_mean
from wirebroker.client.security.acls import RuleFilter, list_acls
from wirebroker.client.security.users import NewPassword, delete_user, list_users, set_user
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.scram import LEAST_ITERATIONS, MOST_ITERATIONS, SCRAM_NUMBERS
from wirebroker.console.changes.change import (
    ChangeError,
    ChangeKind,
    ConsoleRole,
    Field,
    FieldKind,
    PreparedChange,
)
from wirebroker.console.changes.command_line import verb_line
from wirebroker.console.changes.numbers import required_number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.console.model.collector import Collector

_DEFAULT: Final = "SCRAM-SHA-512"
_MOST_CHARACTERS: Final = 1024
_NAME: Final = Field("name", "User", help="The name in logins and, as User:NAME, in ACLs.")


async def _set(collector: Collector, values: Mapping[str, str]) -> PreparedChange:
    name, mechanism = values["name"], values["mechanism"]
    if len(values["password"]) > _MOST_CHARACTERS:
        raise ChangeError(f"a password has at most {_MOST_CHARACTERS} characters", "password")
    iterations = required_number(values, "iterations", LEAST_ITERATIONS, MOST_ITERATIONS)
    existing = {user.mechanism: user for user in await list_users(collector.client, [name])}
    known = existing.get(mechanism)
    new = NewPassword(values["password"], iterations)

    async def apply() -> str:
        await set_user(collector.client, name, SCRAM_NUMBERS[mechanism], new)
        return f"user {name} logs in by {mechanism}"

    lines = [f"{mechanism}: {'a new' if known else 'the first'} password"]
    if known is not None and known.iterations != iterations:
        lines.append(f"iterations of its hash: {known.iterations} → {iterations}")
    lines += [f"{other}: unchanged" for other in existing if other != mechanism]
    warnings = ["clients with the old password cannot log in again"] if known else []
    flags = ("--mechanism", mechanism, "--iterations", str(iterations))
    return PreparedChange(
        f"Change the password of user {name}" if known else f"Create user {name} for {mechanism}",
        tuple(lines),
        verb_line(collector.settings, "user set", flags, [name]),
        apply,
        tuple(warnings),
        notes=("the command asks for the password", "existing connections stay open"),
    )


async def _delete(collector: Collector, values: Mapping[str, str]) -> PreparedChange:
    name, mechanism = values["name"], values["mechanism"]
    existing = await list_users(collector.client)
    own = [user.mechanism for user in existing if user.name == name]
    selected = [candidate for candidate in own if mechanism in {"all", candidate}]
    if not own:
        hint = did_you_mean(name, {user.name: None for user in existing})
        raise ChangeError(f"there is no user {name}{hint}", "name")
    if not selected:
        raise ChangeError(f"user {name} has no password for {mechanism}", "mechanism")

    async def apply() -> str:
        await delete_user(collector.client, name, [SCRAM_NUMBERS[word] for word in selected])
        return f"user {name} can no longer log in by {few_of(selected, 2)}"

    flags = () if mechanism == "all" else ("--mechanism", mechanism)
    acls = await _acl_count(collector, name)
    return PreparedChange(
        f"Delete user {name}"
        if len(selected) == len(own)
        else f"Delete {mechanism} of user {name}",
        tuple(f"- {word}" for word in selected),
        verb_line(collector.settings, "user delete", flags, [name]),
        apply,
        ("its clients cannot log in again; existing connections stay open",),
        notes=(f"{counted(acls, 'ACL')} of User:{name} remain",) if acls else (),
    )


async def _acl_count(collector: Collector, name: str) -> int:
    """Return the number of ACLs of a user; 0 without an authorizer, or if they may not be read."""
    try:
        rules = await list_acls(collector.client, RuleFilter(principal=f"User:{name}"))
    except ClientError as error:
        if error.code not in {
            ErrorCode.SECURITY_DISABLED,
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        }:
            raise
        return 0
    return len(rules)


KINDS: Final[tuple[ChangeKind, ...]] = (
    ChangeKind(
        "set-user",
        "Create a user or change its password",
        ConsoleRole.ADMIN,
        (
            _NAME,
            Field("password", "Password", FieldKind.PASSWORD),
            Field(
                "mechanism",
                "Mechanism",
                FieldKind.CHOICE,
                help="The SASL mechanism of its logins.",
                default=_DEFAULT,
                choices=tuple((word, word) for word in sorted(SCRAM_NUMBERS, reverse=True)),
            ),
            Field(
                "iterations",
                "Iterations",
                FieldKind.NUMBER,
                help=f"Of the password's hash, {LEAST_ITERATIONS} to {MOST_ITERATIONS}.",
                is_required=False,
                default=str(LEAST_ITERATIONS),
            ),
        ),
        "name",
        _set,
        "users",
    ),
    ChangeKind(
        "delete-user",
        "Delete a user",
        ConsoleRole.ADMIN,
        (
            _NAME,
            Field(
                "mechanism",
                "Mechanism",
                FieldKind.CHOICE,
                default="all",
                choices=(("all", "all"), *((word, word) for word in SCRAM_NUMBERS)),
            ),
        ),
        "name",
        _delete,
        "users",
    ),
)
