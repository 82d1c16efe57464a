"""locb serve: decisions and rewards over HTTP."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from locb.cli.common import console, leave, seconds

POLICY = "The policy"
REWARDS = "Rewards"
SAFETY = "Who may ask, and how much"


def serve(
    data_dir: Annotated[Path, typer.Option(help="Folder of the log and the snapshots; made if it is not there.")],
    dim: Annotated[
        int | None, typer.Option(help="Features of an arm, hashed ones and the constant included. Needed once.")
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(help="postgresql://user@host/name, instead of a SQLite file in the folder.", envvar="LOCB_STORE"),
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen at.", min=0, max=65535)] = 8080,
    policy: Annotated[
        str | None,
        typer.Option(
            help="Name of a policy (see below), or file.py:Class for a custom policy. Default: locb.",
            rich_help_panel=POLICY,
        ),
    ] = None,
    gamma: Annotated[
        float | None, typer.Option(help="Users nearer to each other than this are alike.", rich_help_panel=POLICY)
    ] = None,
    n_seeds: Annotated[
        int | None, typer.Option(help="Sets to grow, around the first users to come.", min=1, rich_help_panel=POLICY)
    ] = None,
    alpha: Annotated[
        float | None, typer.Option(help="Weight of the bonus for what is uncertain.", rich_help_panel=POLICY)
    ] = None,
    parameter: Annotated[
        list[str] | None,
        typer.Option(
            help="Any other parameter of the policy (see below), as name=value. Can be repeated.",
            rich_help_panel=POLICY,
        ),
    ] = None,
    reward_wait: Annotated[
        str,
        typer.Option(
            help="How long to wait for a reward: 30s, 10m, 2h, 1d; a bare number is seconds.", rich_help_panel=REWARDS
        ),
    ] = "10m",
    default_reward: Annotated[
        float | None,
        typer.Option(
            help="Learned when no reward came in time; a later one corrects it. If not given, nothing is learned.",
            rich_help_panel=REWARDS,
        ),
    ] = None,
    snapshot_every: Annotated[
        int, typer.Option(help="Events between snapshots; a start replays what came after the newest.", min=1)
    ] = 100_000,
    token_file: Annotated[
        Path | None,
        typer.Option(
            help="Tokens, one a line, each with its scopes: decide, read, delete. Without it the service listens to "
            "this machine alone.",
            rich_help_panel=SAFETY,
        ),
    ] = None,
    max_body: Annotated[int, typer.Option(help="Bytes of a request.", min=1024, rich_help_panel=SAFETY)] = 1 << 20,
    max_in_flight: Annotated[int, typer.Option(help="Requests at once.", min=1, rich_help_panel=SAFETY)] = 1000,
    personalizer_user: Annotated[
        str,
        typer.Option(help="Where requests in the shape of Azure Personalizer tell the user, in contextFeatures."),
    ] = "user.id",
    shutdown_timeout: Annotated[int, typer.Option(help="How long requests may take to finish on SIGTERM.", min=0)] = 20,
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
) -> None:
    """Recommend and reward over HTTP: nothing that was answered is lost.

    **locb serve --data-dir state --dim 10** starts a service on port 8080; the same command goes on where it stopped.
    Ask at /v1/recommend, send rewards to /v1/reward; /openapi.json and docs/service.md tell the rest.
    """
    try:
        from locb.service.api.auth import Tokens, is_loopback, read_tokens
        from locb.service.config import ServiceConfig
        from locb.service.server import configure_logging
        from locb.service.server import serve as run
        from locb.service.store.database import StoreError
        from locb.service.store.locks import AlreadyOpenError
    except ImportError as error:
        leave(f"the service needs {error.name}: pip install 'locb[service]'", 2)
    if log_level not in ("debug", "info", "warning", "error"):
        raise ValueError(f"--log-level must be debug, info, warning or error, not {log_level!r}")
    if policy is not None and policy.partition(":")[0].endswith(".py"):
        from locb.experiments.custom_policy import register_custom_policy

        policy = register_custom_policy(policy)
    parameters: dict[str, Any] = {"gamma": gamma, "n_seeds": n_seeds, "alpha": alpha}
    parameters = {name: value for name, value in parameters.items() if value is not None}
    parameters |= dict(_pair(pair) for pair in parameter or [])
    options = ServiceConfig(
        data_dir=data_dir,
        store=store,
        policy=policy,
        dim=dim,
        parameters=parameters,
        default_reward=default_reward,
        reward_wait=seconds("reward-wait", reward_wait),
        snapshot_every=snapshot_every,
        personalizer_user=personalizer_user,
        max_body_bytes=max_body,
        max_in_flight=max_in_flight,
    )
    tokens = Tokens() if token_file is None else read_tokens(token_file)
    configure_logging(log_level)
    if not tokens and is_loopback(host):
        console.print("No --token-file: whoever is on this machine may ask, and nobody else.", style="yellow")

    def on_listening() -> None:
        console.print(f"Starting at http://{host}:{port} …  (Ctrl-C stops it)")

    try:
        run(options, host, port, tokens, shutdown_timeout, on_listening)
    except (AlreadyOpenError, StoreError) as error:
        leave(str(error), 1)


def _pair(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise ValueError(f"--parameter must be name=value, not {text!r}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value
