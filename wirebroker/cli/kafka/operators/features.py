"""`wirebroker kafka-features`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from wirebroker.cli.kafka.operators.release_tables import (
    add_release_commands,
    known_release,
    level_of,
)
from wirebroker.cli.kafka.plumbing.connection import ConnectionFlags, connection_flags, run_tool
from wirebroker.cli.kafka.plumbing.subcommands import ScriptGroup
from wirebroker.client.cluster.features import (
    SAFE_DOWNGRADE,
    UNSAFE_DOWNGRADE,
    UPGRADE,
    features_and_epoch,
    update_features,
)
from wirebroker.client.errors import ClientError
from wirebroker.config.rows.release_features import (
    METADATA_VERSION,
    levels_of_release,
    release_name,
)

if TYPE_CHECKING:
    from typing import Unpack

    from wirebroker.cli.plumbing.output import Output
    from wirebroker.client.kafka_client import KafkaClient

_NAME_WIDTH: Final = 42
_LEVEL_WIDTH: Final = 17
_release = click.option("--release-version", "release", metavar="VERSION", help="Set all features.")
_metadata = click.option("--metadata", metavar="VERSION", help="Deprecated: use --feature.")
_feature = click.option(
    "--feature",
    "features",
    multiple=True,
    metavar="NAME=LEVEL",
    help="Feature and its level (repeatable).",
)
_unsafe = click.option("--unsafe", is_flag=True, help="Allow a downgrade that loses metadata.")
_dry_run = click.option("--dry-run", is_flag=True, help="Check the change without making it.")


@click.group(cls=ScriptGroup)
@connection_flags()
@click.pass_context
def kafka_features(context: click.Context, **flags: Unpack[ConnectionFlags]) -> int:
    """Show and change the features of a cluster, as kafka-features.sh."""
    context.obj = flags
    return 0


@kafka_features.command()
@click.pass_obj
def describe(flags: ConnectionFlags) -> int:
    """Show the levels of all features."""

    async def work(client: KafkaClient, out: Output) -> None:
        features, epoch = await features_and_epoch(client)
        for feature in features:
            if not feature.highest:  # this node does not support the cluster's feature
                continue
            columns = (
                ("Feature: ", feature.name.ljust(_NAME_WIDTH)),
                ("SupportedMinVersion: ", _named(feature.name, feature.lowest)),
                ("SupportedMaxVersion: ", _named(feature.name, feature.highest)),
                ("FinalizedVersionLevel: ", _named(feature.name, feature.level)),
            )
            fields = "".join(title + text for title, text in columns)
            out.line(f"{fields}Epoch: {'-' if epoch < 0 else epoch}")

    return run_tool(flags, work)


@kafka_features.command()
@_metadata
@_release
@_feature
@_dry_run
@click.pass_obj
def upgrade(
    flags: ConnectionFlags,
    *,
    metadata: str | None,
    release: str | None,
    features: tuple[str, ...],
    dry_run: bool,
) -> int:
    """Raise features to higher levels."""
    levels = _levels(metadata, release, features, is_upgrade=True)
    return _update(flags, "upgrade", levels, UPGRADE, is_trial=dry_run)


@kafka_features.command()
@_metadata
@_release
@_feature
@_unsafe
@_dry_run
@click.pass_obj
def downgrade(
    flags: ConnectionFlags,
    *,
    metadata: str | None,
    release: str | None,
    features: tuple[str, ...],
    unsafe: bool,
    dry_run: bool,
) -> int:
    """Lower features to earlier levels."""
    levels = _levels(metadata, release, features, is_upgrade=False)
    kind = UNSAFE_DOWNGRADE if unsafe else SAFE_DOWNGRADE
    return _update(flags, "downgrade", levels, kind, is_trial=dry_run)


@kafka_features.command()
@click.option("--feature", "features", multiple=True, metavar="NAME", help="A feature to disable.")
@_unsafe
@_dry_run
@click.pass_obj
def disable(
    flags: ConnectionFlags, *, features: tuple[str, ...], unsafe: bool, dry_run: bool
) -> int:
    """Disable features: lower them to level 0."""
    levels = _once([(name, 0) for name in features])
    kind = UNSAFE_DOWNGRADE if unsafe else SAFE_DOWNGRADE
    return _update(flags, "disable", levels, kind, is_trial=dry_run)


add_release_commands(kafka_features, short=False)


def _named(feature: str, level: int) -> str:
    """Return a level as Kafka's tool does: metadata.version by name."""
    text = f"{level}"
    if feature == METADATA_VERSION:
        text = release_name(level) or ("0" if level == 0 else f"UNKNOWN [{level}]")
    return text.ljust(_LEVEL_WIDTH)


def _once(levels: list[tuple[str, int]]) -> dict[str, int]:
    unique_levels: dict[str, int] = {}
    for name, level in levels:
        if name in unique_levels:
            raise click.UsageError(f"Feature {name} was specified more than once.")
        unique_levels[name] = level
    return unique_levels


def _levels(
    metadata: str | None, release: str | None, features: tuple[str, ...], *, is_upgrade: bool
) -> dict[str, int]:
    if release is not None:
        if metadata is not None or features:
            raise click.UsageError("Can not specify `release-version` with other feature flags.")
        level = known_release(release)
        release_levels = levels_of_release(level).items()
        return {METADATA_VERSION: level} | {
            name: feature_level
            for name, feature_level in release_levels
            if feature_level or not is_upgrade
        }
    levels = [level_of(feature) for feature in features]
    if metadata is not None:
        click.echo(" `metadata` flag is deprecated and may be removed in a future release.")
        levels.insert(0, (METADATA_VERSION, known_release(metadata)))
    return _once(levels)


def _update(
    flags: ConnectionFlags, verb: str, levels: dict[str, int], kind: int, *, is_trial: bool
) -> int:
    if not levels:
        raise click.UsageError(f"You must specify at least one feature to {verb}")
    target = {name: "" if verb == "disable" else f" to {level}" for name, level in levels.items()}

    async def work(client: KafkaClient, out: Output) -> None:
        refused: dict[str, str | None] = {}
        try:
            refused = await update_features(client, levels, kind, is_trial=is_trial)
        except ClientError as error:
            if not error.code:
                raise
            refused = dict.fromkeys(levels, error.told or str(error))
        refused = {name: reason for name, reason in refused.items() if reason is not None}
        for name in sorted(levels):
            if name in refused:
                cannot = "Can not" if is_trial else "Could not"
                out.line(f"{cannot} {verb} {name}{target[name]}. {refused[name]}")
            else:
                done = "can be" if is_trial else "was"
                out.line(f"{name} {done} {verb.removesuffix('e')}ed{target[name]}.")
        if refused:
            raise ClientError(f"{len(refused)} out of {len(levels)} operation(s) failed.")

    return run_tool(flags, work)
