"""Kafka's tools with subcommands, for which Kafka uses another parser."""

from __future__ import annotations

from typing import Any

import click

from wirebroker.cli.kafka.plumbing.script import ScriptCommand, refused


class Subcommand(ScriptCommand):
    """A subcommand; the last value of a repeated flag counts."""

    takes_repeats = True


class ScriptGroup(click.Group):
    """A tool with subcommands; wrong arguments have exit status 1."""

    command_class = Subcommand

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Parse the flags before the subcommand."""
        if not args and not extra.get("resilient_parsing"):
            raise refused(click.UsageError("too few arguments: name a subcommand"), info_name)
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.UsageError as error:
            raise refused(error, info_name) from None

    def invoke(self, ctx: click.Context) -> Any:
        """Run the subcommand."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            raise refused(error, ctx.info_name) from None
