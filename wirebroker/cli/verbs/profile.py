"""`wirebroker profile …`."""

from __future__ import annotations

import click

from wirebroker.base.text import counted
from wirebroker.cli.plumbing.output import Output
from wirebroker.cli.plumbing.profiles import (
    current_profile,
    delete_profile,
    profile_file,
    profile_names,
    use_profile,
    write_profile,
)
from wirebroker.config.java.properties import parse_properties

_SECRETS = ("password", "jaas", "keystore.key", "secret")


@click.group()
def profile() -> None:
    """Manage profiles: named clusters, one of which is in use.

    A profile is a file of Kafka client settings. Flags and WIREBROKER_BOOTSTRAP have precedence
    over it. WIREBROKER_PROFILE selects a profile other than the one in use.
    """


@profile.command("set")
@click.argument("name", metavar="NAME")
@click.argument("settings", nargs=-1, required=True, metavar="KEY=VALUE...")
def set_(*, name: str, settings: tuple[str, ...]) -> int:
    """Set settings of a new or existing profile; `KEY=` removes one.

    For example bootstrap.servers=kafka:9092 or security.protocol=SSL.
    """
    properties = {}
    if name in profile_names():
        properties = parse_properties(profile_file(name).read_text("latin-1"))
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key.strip():
            raise click.UsageError(f"{setting} is not a setting: write KEY=VALUE")
        properties[key.strip()] = value.strip()
    write_profile(name, {key: value for key, value in properties.items() if value})
    click.echo(
        f"{name}: {counted(len([value for value in properties.values() if value]), 'setting')}"
    )
    return 0


@profile.command("list")
def list_() -> int:
    """List profiles; a star marks the one in use."""
    out = Output(is_json=False)
    current = current_profile()
    with out:
        for name in profile_names():
            out.line(f"{'*' if name == current else ' '} {name}")
    return 0


@profile.command()
@click.argument("name", required=False, metavar="[NAME]")
def show(*, name: str | None) -> int:
    """Show the settings of a profile, by default the one in use; secrets are hidden."""
    chosen = name or current_profile()
    if chosen is None:
        raise click.UsageError(
            "no profile is in use: select one with `wirebroker profile use NAME`"
        )
    properties = parse_properties(profile_file(chosen).read_text("latin-1"))
    for key, value in sorted(properties.items()):
        click.echo(f"{key}={'(hidden)' if any(secret in key for secret in _SECRETS) else value}")
    return 0


@profile.command()
@click.argument("name", required=False, metavar="[NAME]")
@click.option("--none", "nothing", is_flag=True, help="Use no profile.")
def use(*, name: str | None, nothing: bool) -> int:
    """Select the profile that verbs use from now on."""
    if (name is None) != nothing:
        raise click.UsageError("name a profile, or give --none")
    use_profile(name)
    return 0


@profile.command()
@click.argument("name", metavar="NAME")
def delete(*, name: str) -> int:
    """Delete a profile."""
    delete_profile(name)
    return 0
