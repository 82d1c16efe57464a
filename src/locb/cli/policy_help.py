"""Help of commands with policies: ``--help`` also lists the parameters of every policy in the registry."""

from __future__ import annotations

from typing import Any, ClassVar

from rich.padding import Padding
from rich.text import Text
from typer.core import TyperCommand

from locb.cli.common import console


class PolicyCommand(TyperCommand):
    """Command whose ``--help`` ends with the parameters of every policy."""

    heading: ClassVar[str] = "Parameters of the policies (set with --parameter name=value)"
    shown: ClassVar[tuple[str, ...]] = ()  # names of the parameters to list; an empty tuple lists all
    for_service: ClassVar[bool] = True  # whether to show the defaults of a service instead of those of the library

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help of the command, then the parameters of every policy.

        The registry is imported here, because other calls of the command line do not need it.
        """
        super().format_help(ctx, formatter)
        from locb.policies.registry import REGISTRY, describe_parameters

        console.print(Text(f" {self.heading}\n", style="bold"))
        for name, spec in REGISTRY.items():
            console.print(Text(f" {name}" if spec.label == name else f" {name} ({spec.label})", style="cyan"))
            for line in describe_parameters(name, only=self.shown, for_service=self.for_service).splitlines():
                console.print(Padding(Text(line), (0, 0, 0, 3), expand=False))
            console.print()


class CompareCommand(PolicyCommand):
    """Command ``locb compare``, whose help lists only the parameters that its options set."""

    heading = "Parameters of the policies (alpha: --alphas; other parameters: the option of the same name)"
    shown = ("alpha", "gamma", "n_seeds", "reward_range")
    for_service = False
