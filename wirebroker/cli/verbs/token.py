"""`wirebroker token …`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import click

from wirebroker.cli.plumbing.flags import duration_ms
from wirebroker.cli.plumbing.running import ClusterFlags, cluster_flags, run_verb
from wirebroker.client.security.delegation_tokens import (
    UNSET_MS,
    create_token,
    expire_token,
    list_tokens,
    renew_token,
)

if TYPE_CHECKING:
    from typing import Unpack

    from wirebroker.cli.plumbing.output import Output
    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.client.security.delegation_tokens import ListedToken

_COLUMNS: Final = ("token_id", "owner", "requester", "renewers", "issued", "expires", "ends")


def _principals(
    _context: click.Context, _option: click.Parameter, texts: tuple[str, ...], /
) -> tuple[str, ...]:
    for text in texts:
        _check_principal(text)
    return texts


def _principal(
    _context: click.Context, _option: click.Parameter, text: str | None, /
) -> str | None:
    if text is not None:
        _check_principal(text)
    return text


def _check_principal(text: str) -> None:
    kind, colon, name = text.partition(":")
    if not kind or not name:
        suggestion = "User:NAME" if colon or not text else f"User:{text}"
        raise click.UsageError(f"{text!r} is not a principal: write {suggestion}")


@click.group()
def token() -> None:
    """Create, show, renew and expire delegation tokens.

    With a token's HMAC, a client logs in by SCRAM as the token's owner until the token expires. To
    use these verbs, log in by TLS or by SASL with a password (KIP-48).
    """


@token.command()
@click.option(
    "--owner",
    metavar="PRINCIPAL",
    callback=_principal,
    help="Owner of the token, as User:NAME. [default: the requester]",
)
@click.option(
    "--renewer",
    "renewers",
    multiple=True,
    metavar="PRINCIPAL",
    callback=_principals,
    help="Another principal that may renew and expire it, as User:NAME (repeatable).",
)
@click.option(
    "--lifetime",
    "lifetime_ms",
    metavar="TIME",
    callback=duration_ms,
    help="Maximum lifetime, such as 12h or 7d. [default: the cluster's]",
)
@cluster_flags
def create(
    *,
    owner: str | None,
    renewers: tuple[str, ...],
    lifetime_ms: int | None,
    **flags: Unpack[ClusterFlags],
) -> int:
    """Create a token and print its id and HMAC: user and password of a login."""

    async def work(client: KafkaClient, out: Output) -> None:
        token = await create_token(
            client, owner=owner, renewers=renewers, lifetime_ms=_given(lifetime_ms)
        )
        row = _row(token)
        lines = [f"{name:<10} {row[name]}" for name in ("token_id", "hmac", "owner", "expires")]
        out.show(row, lines)

    return run_verb(flags, work)


@token.command("list")
@click.argument("owners", nargs=-1, metavar="[PRINCIPAL...]", callback=_principals)
@click.option("--hmac", is_flag=True, help="Show HMACs, which are passwords.")
@cluster_flags
def list_(*, owners: tuple[str, ...], hmac: bool, **flags: Unpack[ClusterFlags]) -> int:
    """List visible tokens: all, or those that the principals own, renew or requested."""

    async def work(client: KafkaClient, out: Output) -> None:
        rows = [_row(token) for token in await list_tokens(client, owners)]
        if not hmac:
            for row in rows:
                del row["hmac"]
        out.show(rows, out.table(rows, (*_COLUMNS, "hmac") if hmac else _COLUMNS))

    return run_verb(flags, work)


@token.command()
@click.argument("token_id", metavar="TOKEN_ID")
@click.option(
    "--for",
    "period_ms",
    metavar="TIME",
    callback=duration_ms,
    help="Time from now on, such as 30m or 12h. [default: the cluster's]",
)
@cluster_flags
def renew(*, token_id: str, period_ms: int | None, **flags: Unpack[ClusterFlags]) -> int:
    """Extend the life of a token."""

    async def work(client: KafkaClient, out: Output) -> None:
        expires = _time(await renew_token(client, token_id, _given(period_ms)))
        out.show(
            {"token_id": token_id, "expires": expires}, [f"token {token_id} expires at {expires}"]
        )

    return run_verb(flags, work)


@token.command()
@click.argument("token_id", metavar="TOKEN_ID")
@click.option(
    "--in",
    "period_ms",
    metavar="TIME",
    callback=duration_ms,
    help="Expire after this time, such as 30m, instead of now.",
)
@cluster_flags
def expire(*, token_id: str, period_ms: int | None, **flags: Unpack[ClusterFlags]) -> int:
    """Expire a token; existing connections stay until their session ends."""

    async def work(client: KafkaClient, out: Output) -> None:
        expires = _time(await expire_token(client, token_id, _given(period_ms)))
        out.show(
            {"token_id": token_id, "expires": expires}, [f"token {token_id} expires at {expires}"]
        )

    return run_verb(flags, work)


def _given(period_ms: int | None) -> int:
    return UNSET_MS if period_ms is None else period_ms


def _row(token: ListedToken) -> dict[str, Any]:
    return {
        "token_id": token.token_id,
        "owner": token.owner,
        "requester": token.requester or None,
        "renewers": token.renewers,
        "issued": _time(token.issued_ms),
        "expires": _time(token.expires_ms),
        "ends": _time(token.ends_ms),
        "hmac": token.hmac,
    }


def _time(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
