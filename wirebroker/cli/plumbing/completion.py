"""`wirebroker completion`: a script with which a shell completes words (click's own).

Types of arguments provide the completions (completed_names.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from click.shell_completion import ShellComplete

_SHELLS: Final = ("bash", "zsh", "fish")
# What click's scripts ask by: the program's name behind an underscore.
_VARIABLE: Final = "_WIREBROKER_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS), metavar="SHELL")
@click.pass_context
def completion(context: click.Context, *, shell: str) -> int:
    """Print a shell completion script: bash, zsh or fish.

    It completes verbs, flags, the names of Kafka's configs, and the names of topics, groups and
    brokers. It asks the cluster given by flags, WIREBROKER_BOOTSTRAP or the profile for those.

    For bash, put `eval "$(wirebroker completion bash)"` into ~/.bashrc; for zsh the same with zsh
    into ~/.zshrc; for fish, `wirebroker completion fish` into a file of its completions folder.
    """
    from click.shell_completion import get_completion_class  # noqa: PLC0415 - for this verb

    kind: type[ShellComplete] | None = get_completion_class(shell)
    assert kind is not None, shell
    click.echo(kind(context.find_root().command, {}, "wirebroker", _VARIABLE).source())
    return 0
