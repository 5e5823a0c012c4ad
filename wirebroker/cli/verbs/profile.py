"""`wirebroker profile …`: clusters by names of one's own."""

from __future__ import annotations

import click

from wirebroker.base.wording import counted
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
    """Keep clusters by names of one's own, and choose which verbs ask.

    A profile is a file of Kafka's client settings. Flags and WIREBROKER_BOOTSTRAP count before it;
    WIREBROKER_PROFILE names another than the one in use.
    """


@profile.command("set")
@click.argument("name", metavar="NAME")
@click.argument("settings", nargs=-1, required=True, metavar="KEY=VALUE...")
def set_(*, name: str, settings: tuple[str, ...]) -> int:
    """Set settings of a profile, which is made if need be; `KEY=` takes one away.

    Such as bootstrap.servers=kafka:9092 or security.protocol=SSL.
    """
    found = {}
    if name in profile_names():
        found = parse_properties(profile_file(name).read_text("latin-1"))
    for each in settings:
        key, equals, value = each.partition("=")
        if not equals or not key.strip():
            raise click.UsageError(f"{each} is no setting: write key=value")
        found[key.strip()] = value.strip()
    write_profile(name, {key: value for key, value in found.items() if value})
    click.echo(f"{name}: {counted(len([each for each in found.values() if each]), 'setting')}")
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
    """Show the settings of a profile, the one in use if none is named; secrets are hidden."""
    chosen = name or current_profile()
    if chosen is None:
        raise click.UsageError("no profile is in use: `wirebroker profile use NAME`")
    found = parse_properties(profile_file(chosen).read_text("latin-1"))
    for key, value in sorted(found.items()):
        click.echo(f"{key}={'(hidden)' if any(each in key for each in _SECRETS) else value}")
    return 0


@profile.command()
@click.argument("name", required=False, metavar="[NAME]")
@click.option("--none", "nothing", is_flag=True, help="Use none.")
def use(*, name: str | None, nothing: bool) -> int:
    """Let verbs ask this profile's cluster from now on."""
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
