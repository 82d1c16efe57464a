"""Command ``locb serve``, which runs a service. Its options are generated from the keys of ``ServiceConfig``."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator
from typing import Annotated, Any, get_type_hints

import typer

from locb.cli.common import console, number_pair, parameter_pair, seconds
from locb.cli.errors import leave, leave_without_package
from locb.service.config import PARAMETER_OPTIONS, POLICY, Key, ServiceConfig, describe_key

_POLICY_OPTIONS = {
    "gamma": (
        float | None,
        "LOCB: intended maximum distance between two users of a group. CAB: see the list below. Default: 0.2.",
        None,
    ),
    "n_seeds": (
        int | None,
        "LOCB, ELOC: number of seed users, the first users who arrive. One group is built around each. Default: 30.",
        1,
    ),
    "alpha": (float | None, "All policies except ELOC: weight of the exploration bonus. Default: 1.", None),
    "reward_range": (
        str | None,
        (
            "Lowest and highest reward, as low,high. Set it unless rewards are about 0 to 1. ELOC needs it only with "
            "screen=theory and for certificates."
        ),
        None,
    ),
    "parameter": (
        list[str] | None,
        "Parameter of the policy, as name=value (see the list below). Repeat the option to set several parameters.",
        None,
    ),
}
START_OPTION = (
    "Option for reading the log of --start-from, as name=value: format, user, chosen, arms, reward, time, "
    "missing_reward, decimal, separator, header or position, as for locb evaluate; collisions=allow accepts arms with "
    "equal vectors. For a saved policy: users=FILE, a text file with one user id per line. Repeat the option to set "
    "several."
)


def serve(**options: Any) -> None:
    """Serve recommendations over HTTP, learn from rewards, and store decisions and rewards on disk.

    **locb serve --data-dir state --dim 10** starts a service on port 8080. The same command continues later with the
    stored data. Request decisions at /v1/recommend and send rewards to /v1/reward. /openapi.json describes all routes.
    """
    try:
        from locb.service.api.middleware import is_loopback
        from locb.service.server import configure_logging
        from locb.service.server import serve as run
        from locb.service.store.database import StoreError
        from locb.service.store.locks import AlreadyOpenError
    except ImportError as error:
        leave_without_package("serve", "service", error)
    config = make_config(options)
    configure_logging(config.log_level)
    if config.token_file is None and is_loopback(config.host):
        console.print("No --token-file: the service accepts requests from this machine only.", style="yellow")

    def on_listening(url: str) -> None:
        console.print(f"Starting the service at {url} …  (Ctrl-C stops it)", markup=False)

    try:
        run(config, on_listening)
    except (AlreadyOpenError, StoreError) as error:
        leave(str(error), 1)


def make_config(options: dict[str, Any]) -> ServiceConfig:
    """Return the configuration from the options of ``locb serve`` (name → value). A custom policy is registered."""
    parameters = {name: options.pop(name) for name in PARAMETER_OPTIONS}
    parameters = {name: value for name, value in parameters.items() if value is not None}
    parameters |= dict(parameter_pair(pair) for pair in options.pop("parameter") or [])
    options["start_options"] = dict(parameter_pair(pair, "start-option") for pair in options.pop("start_option") or [])
    if isinstance(parameters.get("reward_range"), str):
        parameters["reward_range"] = list(number_pair("reward-range", parameters["reward_range"]))
    for name, value in options.items():
        if describe_key(name).is_duration and value is not None:
            options[name] = seconds(name.replace("_", "-"), value)
    policy = options["policy"]
    if policy is not None and policy.partition(":")[0].endswith(".py"):
        from locb.experiments.custom_policy import register_custom_policy

        options["policy"] = register_custom_policy(policy)
    return ServiceConfig(**options, parameters=parameters)


def _options() -> Iterator[inspect.Parameter]:
    """Yield one option per configuration key, and the options that set parameters of the policy."""
    types = get_type_hints(ServiceConfig)
    for field in dataclasses.fields(ServiceConfig):
        if field.name == "parameters":
            for name, (parameter_type, text, minimum) in _POLICY_OPTIONS.items():
                yield _option(name, parameter_type, None, Key(text, POLICY, minimum))
            continue
        if field.name == "start_options":
            yield _option("start_option", list[str] | None, None, Key(START_OPTION, POLICY))
            continue
        key, default = describe_key(field.name), field.default
        option_type: Any = types[field.name]
        if key.is_duration:
            option_type = str if default is not None else str | None
            default = None if default is None else _format_duration(default)
        yield _option(field.name, option_type, default, key)


def _option(name: str, option_type: Any, default: Any, key: Key) -> inspect.Parameter:
    examples = "30s, 10m, 2h, 90d" if (key.minimum or 0) <= 30 else "2h, 90d"
    text = f"{key.description} Examples: {examples}." if key.is_duration else key.description
    panel = None if key.section == "Options" else key.section
    low, high = (None, None) if key.is_duration else (key.minimum, key.maximum)  # a duration is text here
    option = typer.Option(help=text, min=low, max=high, envvar=key.environment, rich_help_panel=panel)
    if default is dataclasses.MISSING:
        default = inspect.Parameter.empty
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[option_type, option]
    )


def _format_duration(value: Any) -> str:
    return f"{value / 60:g}m" if value >= 60 and value % 60 == 0 else f"{value:g}s"


serve.__signature__ = inspect.Signature(list(_options()))  # type: ignore[attr-defined]  # not declared for functions
serve.__annotations__ = {parameter.name: parameter.annotation for parameter in _options()} | {"return": None}
