"""Flags before a subcommand: used, or refused, but never ignored."""

from __future__ import annotations

from typing import Final

import click
import pytest

from wirebroker.cli import main as cli

ABSENT: Final = "127.0.0.1:1"
CONTROLLERS: Final = ("--bootstrap-controller", ABSENT)
BROKERS: Final = ("-b", ABSENT)


ARGUMENTS: Final = {
    ("cluster", "unregister"): ["7"],
    ("cluster", "unregister-controller"): ["7"],
    ("quorum", "add-voter"): ["7@127.0.0.1:2"],
    ("quorum", "remove-voter"): ["7"],
}


def groups() -> dict[str, click.Group]:
    context = click.Context(cli.cli)
    commands = {name: cli.cli.get_command(context, name) for name in cli.cli.list_commands(context)}
    return {
        name: verb
        for name, verb in commands.items()
        # Kafka's tools have their flags before the subcommand.
        if isinstance(verb, click.Group) and not name.startswith("kafka-")
    }


GROUPS: Final = groups()
# Verbs that also work without a subcommand.
WITH_FLAGS: Final = ("cluster", "quorum")
SUBCOMMANDS: Final = [
    (name, subcommand) for name in sorted(GROUPS) for subcommand in sorted(GROUPS[name].commands)
]


def test_verbs_with_flags_before_subcommands() -> None:
    assert tuple(name for name in sorted(GROUPS) if GROUPS[name].params) == WITH_FLAGS
    assert len(GROUPS) > 15


@pytest.mark.parametrize(("verb", "subcommand"), SUBCOMMANDS)
def test_address_before_a_subcommand_is_used_or_refused(verb, subcommand, capsys) -> None:
    status = cli.run([verb, *BROKERS, subcommand, *ARGUMENTS.get((verb, subcommand), ())])
    error = capsys.readouterr().err
    if verb in WITH_FLAGS:
        assert (status, ABSENT in error) == (1, True)
    else:
        refusal = "unexpected extra argument" if verb == "delivery" else "No such option"
        assert (status, refusal in error) == (2, True)


@pytest.mark.parametrize(
    ("verb", "subcommand", "arguments"),
    [
        ("cluster", "info", []),
        ("quorum", "describe", []),
        ("quorum", "add-voter", ["7@127.0.0.1:2"]),
        ("quorum", "remove-voter", ["7"]),
    ],
)
def test_controller_before_a_subcommand_is_used(verb, subcommand, arguments, capsys) -> None:
    flags = [*CONTROLLERS, "--timeout", "0.5"]
    assert cli.run([verb, *flags, subcommand, *arguments]) == 1
    assert f"no controller responds at {ABSENT}" in capsys.readouterr().err


@pytest.mark.parametrize("subcommand", ["log-dirs", "unregister", "unregister-controller"])
def test_controller_before_a_subcommand_of_brokers_is_refused(subcommand, capsys) -> None:
    arguments = ARGUMENTS.get(("cluster", subcommand), ())
    assert cli.run(["cluster", *CONTROLLERS, subcommand, *arguments]) == 2
    error = capsys.readouterr().err
    assert f"--bootstrap-controller cannot be used with {subcommand}" in error


@pytest.mark.parametrize("subcommand", ["log-dirs", "unregister", "unregister-controller"])
def test_help_of_a_subcommand_of_brokers_is_shown_after_a_controller(subcommand, capsys) -> None:
    assert cli.run(["cluster", *CONTROLLERS, subcommand, "--help"]) == 0
    assert f"cluster {subcommand} [OPTIONS]" in capsys.readouterr().out


def test_flag_after_the_subcommand_has_precedence(capsys) -> None:
    arguments = ["-b", "127.0.0.1:2", "describe", *BROKERS, "--timeout", "0.5"]
    assert cli.run(["quorum", *arguments]) == 1
    error = capsys.readouterr().err
    assert ABSENT in error
    assert "127.0.0.1:2" not in error


def test_both_kinds_of_addresses_are_refused_at_different_places(capsys) -> None:
    assert cli.run(["quorum", *BROKERS, "describe", *CONTROLLERS]) == 2
    assert "give one of --bootstrap and --bootstrap-controller" in capsys.readouterr().err
