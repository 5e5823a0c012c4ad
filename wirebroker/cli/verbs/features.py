"""`wirebroker features …`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from wirebroker.cli.plumbing.running import (
    ClusterFlags,
    cluster_or_controller_flags,
    run_verb,
)
from wirebroker.client.cluster.features import (
    SAFE_DOWNGRADE,
    UNSAFE_DOWNGRADE,
    UPGRADE,
    features_of,
    update_features,
)
from wirebroker.client.errors import ClientError

if TYPE_CHECKING:
    from typing import Unpack

    from wirebroker.cli.plumbing.output import Output
    from wirebroker.client.kafka_client import KafkaClient


@click.group()
def features() -> None:
    """Show and change the features of a cluster.

    All brokers and controllers must support the level of a feature.
    """


@features.command("list")
@cluster_or_controller_flags
def list_(**flags: Unpack[ClusterFlags]) -> int:
    """List features with the current level and the levels that the node supports."""

    async def work(client: KafkaClient, out: Output) -> None:
        rows = [feature._asdict() for feature in await features_of(client)]
        out.show(rows, out.table(rows, ("name", "level", "lowest", "highest")))

    return run_verb(flags, work)


def _levels(
    _context: click.Context, _flag: click.Parameter, settings: tuple[str, ...]
) -> dict[str, int]:
    levels: dict[str, int] = {}
    for setting in settings:
        name, sign, level = setting.partition("=")
        if not (name and sign and level.isdecimal()) or name in levels:
            raise click.BadParameter(f"{setting}: write NAME=LEVEL, each name once")
        levels[name] = int(level)
    return levels


_changes = click.argument(
    "levels", nargs=-1, required=True, metavar="NAME=LEVEL...", callback=_levels
)
_dry_run = click.option(
    "--dry-run", is_flag=True, help="Check whether the change is possible without making it."
)


@features.command()
@_changes
@_dry_run
@cluster_or_controller_flags
def upgrade(*, levels: dict[str, int], dry_run: bool, **flags: Unpack[ClusterFlags]) -> int:
    """Raise features to higher levels: eligible.leader.replicas.version=1."""
    return _update(levels, UPGRADE, flags, is_trial=dry_run)


@features.command()
@_changes
@click.option("--unsafe", is_flag=True, help="Allow a downgrade that loses metadata.")
@_dry_run
@cluster_or_controller_flags
def downgrade(
    *, levels: dict[str, int], unsafe: bool, dry_run: bool, **flags: Unpack[ClusterFlags]
) -> int:
    """Lower the levels of features; 0 disables a feature."""
    kind = UNSAFE_DOWNGRADE if unsafe else SAFE_DOWNGRADE
    return _update(levels, kind, flags, is_trial=dry_run)


def _update(levels: dict[str, int], kind: int, flags: ClusterFlags, *, is_trial: bool) -> int:
    async def work(client: KafkaClient, out: Output) -> None:
        refused = await update_features(client, levels, kind, is_trial=is_trial)
        rows = [
            {"name": name, "level": levels[name], "refused": reason}
            for name, reason in refused.items()
        ]
        done = "could have" if is_trial else "has"
        lines = [
            f"{row['name']} {done} level {row['level']}"
            if row["refused"] is None
            else f"{row['name']} is refused: {row['refused']}"
            for row in rows
        ]
        out.show(rows, lines)
        if any(refused.values()):
            raise ClientError("no feature was changed")

    return run_verb(flags, work)
