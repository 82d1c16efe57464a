"""The command line: parsing and printing only. A file a command."""

from __future__ import annotations

import re
from typing import Annotated

import typer

import locb
from locb.cli.common import console, leave
from locb.cli.compare import compare
from locb.cli.data import data
from locb.cli.demo import demo
from locb.cli.load import load
from locb.cli.policy_help import CompareCommand, PolicyCommand
from locb.cli.reproduce import reproduce
from locb.cli.serve import serve
from locb.cli.verify import verify
from locb.cli.watch import watch

app = typer.Typer(
    help="Contextual bandits that find like-minded users. Start with: locb compare",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
app.command(cls=CompareCommand)(compare)
app.command()(data)
app.command()(demo)
app.command()(load)
app.command()(reproduce)
app.command(cls=PolicyCommand)(serve)
app.command()(verify)
app.command()(watch)

# What the library calls by another name than the option that sets it.
OPTIONS = {"n_users": "--users", "n_clusters": "--clusters", "raw_dim": "--dimensions", "n_arms": "--arms"}


def main() -> None:
    """Run the command line; a mistake in the input is one line, not a traceback."""
    try:
        app()
    except (ValueError, OSError) as error:
        told = re.sub(r"\w+", lambda word: OPTIONS.get(word[0], word[0]), str(error))
        leave(told, 2)


@app.callback(invoke_without_command=True)
def version(
    show: Annotated[bool, typer.Option("--version", help="Print the version and leave.", is_eager=True)] = False,
) -> None:
    """Print the version if asked."""
    if show:
        console.print(f"locb {locb.__version__}")
        raise typer.Exit
