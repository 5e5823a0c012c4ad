"""Release levels and feature dependencies: subcommands of kafka-features and kafka-storage."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from wirebroker.config.rows.release_features import (
    LATEST_RELEASE,
    METADATA_VERSION,
    RELEASED,
    levels_of_release,
    release_name,
)
from wirebroker.config.rows.row import ConfigError
from wirebroker.quorum.formatting import first_levels

if TYPE_CHECKING:
    from collections.abc import Iterator


def add_release_commands(group: click.Group, *, short: bool) -> None:
    """Add version-mapping and feature-dependencies to a tool; `short` adds short flag names."""
    release = ("--release-version", *(["-r"] if short else []))
    feature = ("--feature", *(["-f"] if short else []))

    @group.command("version-mapping")
    @click.option(
        *release,
        "release",
        default=LATEST_RELEASE,
        metavar="VERSION",
        help=f"Release, for example 4.3. [default: {LATEST_RELEASE}]",
    )
    def version_mapping(*, release: str) -> int:
        """Show the levels of all features that a release sets."""
        level = known_release(release)
        click.echo(f"{METADATA_VERSION}={level} ({release})")
        for name, feature_level in levels_of_release(level).items():
            click.echo(f"{name}={feature_level}")
        return 0

    @group.command("feature-dependencies")
    @click.option(
        *feature,
        "features",
        multiple=True,
        required=True,
        metavar="NAME=LEVEL",
        help="Feature and its level (repeatable).",
    )
    def feature_dependencies(*, features: tuple[str, ...]) -> int:
        """Show the dependencies of feature levels."""
        for text in features:
            for line in _dependency_lines(*level_of(text)):
                click.echo(line)
        return 0

    del version_mapping, feature_dependencies  # the group has them


def known_release(release: str) -> int:
    """Return a release's metadata.version level, or raise click.UsageError."""
    try:
        return first_levels.known_release(release)
    except ConfigError as error:
        raise click.UsageError(str(error)) from None


def level_of(text: str) -> tuple[str, int]:
    """Parse NAME=LEVEL, or raise click.UsageError."""
    try:
        return first_levels.parse_level(text)
    except ConfigError as error:
        raise click.UsageError(str(error)) from None


def _dependency_lines(name: str, level: int) -> Iterator[str]:
    if name == METADATA_VERSION:
        release = release_name(level)
        if release is None:
            raise click.UsageError(f"Unknown metadata.version {level}")
        yield f"{name}={level} ({release}) has no dependencies."
        return
    feature = next((candidate for candidate in RELEASED if candidate.name == name), None)
    if feature is None:
        raise click.UsageError(f"Unknown feature: {name}")
    if not 0 <= level <= len(feature.since):
        raise click.UsageError(f"No feature:{name} with feature level {level}")
    needed = feature.permissions.get(level)
    if needed is None:
        yield f"{name}={level} has no dependencies."
        return
    yield f"{name}={level} requires:"
    yield f"    {METADATA_VERSION}={needed} ({release_name(needed)})"
