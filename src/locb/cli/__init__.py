"""Command line ``locb``: parsing of options and printing of results, with one module per command."""

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
    help="Contextual bandits that find groups of similar users.\n\n"
    "Start with `locb compare` to compare policies, or with `locb demo` to see the service. `locb COMMAND --help` "
    "describes the options of a command.",
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

# Error messages of the library name parameters. These rules replace the parameters by the options that set them.
OPTIONS = {"n_users": "--users", "n_clusters": "--clusters", "n_arms": "--arms"}
SAME_OPTIONS = r"^(dim|gamma)(?= must)"  # parameters that have the same name as their options


def main() -> None:
    """Run the command ``locb``. Invalid input gives a one-line error message and exit code 2, without a traceback."""
    try:
        app()
    except (ValueError, OSError) as error:
        message = re.sub(r"\w+", lambda match: OPTIONS.get(match[0], match[0]), str(error))
        leave(re.sub(SAME_OPTIONS, r"--\1", message), 2)


@app.callback(invoke_without_command=True)
def version(
    show: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False,
) -> None:
    """Print the version if requested."""
    if show:
        console.print(f"locb {locb.__version__}")
        raise typer.Exit
