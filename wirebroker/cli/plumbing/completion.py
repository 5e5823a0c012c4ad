"""`wirebroker completion`: a shell completion script from click."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from click.shell_completion import ShellComplete

_SHELLS: Final = ("bash", "zsh", "fish")
# Derived from the program's name.
_VARIABLE: Final = "_WIREBROKER_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS), metavar="SHELL")
@click.pass_context
def completion(context: click.Context, *, shell: str) -> int:
    """Print a shell completion script: bash, zsh or fish.

    It completes verbs, flags, Kafka's configs, and the topics, groups and brokers of the cluster
    given by flags, WIREBROKER_BOOTSTRAP or the profile.

    For bash, put `eval "$(wirebroker completion bash)"` into ~/.bashrc; for zsh the same with zsh
    into ~/.zshrc; for fish, `wirebroker completion fish` into a file of its completions folder.
    """
    from click.shell_completion import get_completion_class  # noqa: PLC0415

    kind: type[ShellComplete] | None = get_completion_class(shell)
    assert kind is not None, shell
    click.echo(kind(context.find_root().command, {}, "wirebroker", _VARIABLE).source())
    return 0
