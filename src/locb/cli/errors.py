"""Errors of the commands: one line with the names of the options, or a traceback with ``--debug``."""

from __future__ import annotations

import functools
import inspect
import re
import sys
import traceback
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Any, NoReturn, get_args

import typer
from rich.console import Console
from typer.models import ArgumentInfo, OptionInfo

import locb
from locb.common.validation import ParameterError

PACKAGE = str(Path(locb.__file__).parent)
# Parameters of the library that have another name on the command line.
OPTION_NAMES = {
    "n_users": "users",
    "n_clusters": "clusters",
    "n_arms": "arms",
    "raw_dim": "dim",
    "alpha": "alphas",
    "policy": "policies",
    "policies": "policy",
    "format": "log_format",
    "features": "feature",
    "data": "name",
    "header": "no_header",
    "size": "download",
    "folder": "output",
}

Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
debug_mode: ContextVar[bool] = ContextVar("debug_mode", default=False)


def leave(message: str, code: int) -> NoReturn:
    """Print an error message to stderr and exit. With ``--debug``, print the traceback of the current error first."""
    if debug_mode.get() and sys.exc_info()[0] is not None:
        traceback.print_exc()
    message = _name_make_target(message)
    Console(stderr=True, highlight=False, soft_wrap=True).print(f"locb: {message}", style="red", markup=False)
    raise SystemExit(code)


def _name_make_target(message: str) -> str:
    """Add the make target to advice to install an extra, if the package runs from a clone of the repository."""
    if not (Path(PACKAGE).parent.parent / "Makefile").exists():
        return message
    return re.sub(
        r"run (pip install 'locb\[(?:client,)?(data|service)\]')", r"run make .venv/\2 in the clone, or \1", message
    )


def leave_without_package(command: str, extras: str, error: ImportError) -> NoReturn:
    """Exit with the command that installs a missing package. Raise the error if no other package is missing."""
    missing = error.__cause__ or error
    if not isinstance(missing, ModuleNotFoundError) or str(missing.name).split(".")[0] == "locb":
        raise error
    leave(f"locb {command} needs the package {missing.name}: run pip install 'locb[{extras}]'", 2)


def reporting_errors(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with the option ``--debug``. A ValueError, an OSError, a missing package or Ctrl-C gives a
    message of one line.
    """
    signature = inspect.signature(command, eval_str=True)

    @functools.wraps(command)
    def reporting(*arguments: Any, debug: bool, **options: Any) -> None:
        debug_mode.set(debug or debug_mode.get())
        try:
            command(*arguments, **options)
        except BrokenPipeError:
            raise
        except KeyboardInterrupt:  # commands that keep results, or cannot keep them, have handled it
            leave("interrupted; run the same command to start again", 130)
        except ModuleNotFoundError as error:
            leave_without_package(command.__name__, "data", error)
        except (ValueError, OSError) as error:
            hint = " (add --debug to show the traceback)" if _is_caused_elsewhere(error) else ""
            leave(_describe(error, signature) + ("" if debug_mode.get() else hint), 2)

    added = inspect.Parameter("debug", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Debug)
    parameters = [*signature.parameters.values(), added]
    reporting.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]  # not declared for functions
    reporting.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return reporting


def _describe(error: Exception, signature: inspect.Signature) -> str:
    if not isinstance(error, ParameterError):
        return str(error)
    return error.describe(lambda name: _option_name(signature, name))


def _option_name(signature: inspect.Signature, name: str) -> str:
    """Return the option or argument of a command that sets the parameter ``name`` of the library.

    A parameter without an option is ``--parameter NAME`` if the command has that option, otherwise ``name`` itself.
    """
    for candidate in (name, OPTION_NAMES.get(name, name)):
        if candidate in signature.parameters:
            metadata = get_args(signature.parameters[candidate].annotation)[1:]
            info = next((entry for entry in metadata if isinstance(entry, OptionInfo | ArgumentInfo)), None)
            if isinstance(info, ArgumentInfo):
                return (info.metavar or candidate).upper()
            # Inside Annotated, Typer keeps the first name of an option in ``default``.
            declared = [] if info is None else [info.default, *(info.param_decls or ())]
            named = next((text for text in declared if isinstance(text, str) and text.startswith("--")), None)
            return named or f"--{candidate.replace('_', '-')}"
    return f"--parameter {name}" if "parameter" in signature.parameters else name


def _is_caused_elsewhere(error: Exception) -> bool:
    """Return whether a traceback helps to find the reason: the error has a cause, or code outside locb raised it.

    A missing package does not count as a cause, because the message says what to install.
    """
    if error.__cause__ is not None:
        return not isinstance(error.__cause__, ImportError)
    frames = traceback.extract_tb(error.__traceback__)
    return not frames[-1].filename.startswith(PACKAGE)
