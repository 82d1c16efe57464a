"""Command ``locb evaluate``, which estimates what policies would have earned on a log."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from locb.cli.common import console, parameter_pair, print_written, resumable_replays
from locb.cli.data.log_options import (
    AllowSkipped,
    Arms,
    Chosen,
    Decimal,
    Dim,
    Feature,
    LogFiles,
    LogFormat,
    MissingReward,
    NoHeader,
    Position,
    Propensity,
    Reward,
    Separator,
    Time,
    User,
    read_log,
    reading_options,
)

SIZE = "Evaluation"


def evaluate(
    log: LogFiles,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help="Policy to evaluate; repeat the option for several. A learning policy: **eloc**, **locb**, "
            "**linucb-one**, … or **file.py:Class**. A fixed policy: **first**, **random**, **arm:ID**.",
            show_default="eloc and linucb-one",
            rich_help_panel=SIZE,
        ),
    ] = None,
    baseline: Annotated[
        str,
        typer.Option(
            help="Fixed policy with which to compare: **logged** (the policy that made the log), **first**, **random** "
            "or **arm:ID**.",
            rich_help_panel=SIZE,
        ),
    ] = "logged",
    parameter: Annotated[
        list[str] | None,
        typer.Option(help="Parameter of the policies, name=value. Can be repeated.", rich_help_panel=SIZE),
    ] = None,
    replicates: Annotated[int, typer.Option(help="Number of bootstrap replicates.", rich_help_panel=SIZE)] = 1000,
    replays: Annotated[
        int,
        typer.Option(
            help="Number of bootstrap samples in which each learning policy learns again, for its confidence interval.",
            rich_help_panel=SIZE,
        ),
    ] = 20,
    seed: Annotated[int, typer.Option(help="Random seed.", rich_help_panel=SIZE)] = 0,
    log_format: LogFormat = "auto",
    user: User = None,
    chosen: Chosen = None,
    arms: Arms = None,
    reward: Reward = None,
    propensity: Propensity = None,
    time: Time = None,
    feature: Feature = None,
    missing_reward: MissingReward = None,
    decimal: Decimal = None,
    separator: Separator = None,
    no_header: NoHeader = False,
    allow_skipped: AllowSkipped = False,
    dim: Dim = None,
    position: Position = None,
    output: Annotated[
        Path, typer.Option(help="Folder of report.html and evaluation.json.", rich_help_panel=SIZE)
    ] = Path("runs/evaluate"),
) -> None:
    """Estimate what policies would have earned on the decisions of a log, and compare them with a baseline.

    The log has one row per decision: the *user*, the chosen *arm*, the *reward*, and the probability with which the arm
    was chosen (*propensity*). Columns with usual names are detected, and the command prints the columns that it uses.
    Without propensities, there is no verdict, because the rewards of other choices cannot be estimated reliably.

    Fixed policies are evaluated with several estimators: doubly robust, inverse propensity score (IPS), self-normalized
    IPS (SNIPS), direct method and, if all arms were equally probable, replay. Without propensities, only the direct
    method is used. Learning policies start without knowledge and learn from the decisions in which they choose the
    logged arm (replay). Intervals are 95% confidence intervals, from a bootstrap of users. The verdict on a policy is
    *better*, *worse* or *undecided*. If more decisions would help, the command estimates how many.

    Examples:
    - `locb evaluate decisions.csv --policy eloc --policy linucb-one`
    - `locb evaluate shop.csv --user customer --chosen banner --reward revenue --propensity probability`
    - `locb evaluate test.csv --propensity uniform --policy arm:B --baseline arm:A` (an A/B test)
    - `locb evaluate logs/ --format dsjson --policy random`
    - `locb evaluate obd/random/all --policy linucb-one --position 1`
    """
    import locb
    from locb.report.evaluation_folder import write_evaluation
    from locb.report.tables.evaluation_table import make_evaluation_table

    policies = [_register(name) for name in policy or ["eloc", "linucb-one"]]
    options = reading_options(
        user,
        feature,
        separator,
        no_header,
        allow_skipped,
        chosen=chosen,
        arms=arms,
        reward=reward,
        time=time,
        propensity=propensity,
        missing_reward=missing_reward,
        decimal=decimal,
        dim=dim,
        position=position,
    )
    read = read_log(log, log_format, options)
    parameters = dict(parameter_pair(pair) for pair in parameter or [])
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with resumable_replays(output) as folder:
        with Progress(*columns, console=console, transient=True) as bar:
            tasks = {name: bar.add_task(name, total=1.0) for name in policies}
            evaluation = locb.evaluate(
                read,
                policies,
                baseline=baseline,
                parameters=parameters,
                replicates=replicates,
                replays=replays,
                seed=seed,
                folder=folder,
                progress=lambda name, share: bar.update(tasks[name], completed=share),
            )
        console.print(make_evaluation_table(evaluation))
        for result in evaluation.results:
            if result.sentence:
                console.print(result.sentence, style="bold", markup=False, emoji=False)
            for text in result.warnings:
                console.print(f"  {text}", style="dim", markup=False, emoji=False)
        for note in evaluation.notes:
            console.print(f"note: {note}", style="yellow", markup=False, emoji=False)
        print_written(write_evaluation(evaluation, output))


def _register(policy: str) -> str:
    """Return the name of a policy. A custom policy, file.py:Class, is registered."""
    if policy.partition(":")[0].endswith(".py"):
        from locb.experiments.custom_policy import register_custom_policy

        return register_custom_policy(policy)
    return policy
