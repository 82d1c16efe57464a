"""Command line ``locb``: parsing of options and printing of results, with one module per command."""

from __future__ import annotations

from typing import Annotated

import typer

import locb
from locb.cli.common import console
from locb.cli.comparison.compare import compare
from locb.cli.data.dataset import data
from locb.cli.data.evaluate import evaluate
from locb.cli.data.groups import groups
from locb.cli.data.tune import tune
from locb.cli.demo.demo import demo
from locb.cli.errors import Debug, debug_mode, reporting_errors
from locb.cli.load import load
from locb.cli.policy_help import CompareCommand, PolicyCommand
from locb.cli.reproduce import reproduce
from locb.cli.serve import serve
from locb.cli.store import store_app
from locb.cli.verify import verify
from locb.cli.warmup import warmup
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
app.command(cls=CompareCommand)(reporting_errors(compare))
app.command()(reporting_errors(data))
app.command()(reporting_errors(demo))
app.command()(reporting_errors(evaluate))
app.command()(reporting_errors(groups))
app.command()(reporting_errors(load))
app.command()(reporting_errors(reproduce))
app.command(cls=PolicyCommand)(reporting_errors(serve))
app.add_typer(store_app, name="store")
app.command()(reporting_errors(tune))
app.command()(reporting_errors(verify))
app.command()(reporting_errors(warmup))
app.command()(reporting_errors(watch))


def main() -> None:
    """Run the command ``locb``."""
    debug_mode.set(False)
    app()


@app.callback(invoke_without_command=True)
def options(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False,
    debug: Debug = False,
) -> None:
    """Print the version if requested, and record options that apply to every command."""
    debug_mode.set(debug)
    if version:
        console.print(f"locb {locb.__version__}")
        raise typer.Exit
