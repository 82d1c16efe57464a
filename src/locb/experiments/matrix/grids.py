"""Grids of parameters: the settings with which each policy runs in a scenario, and their extension at an edge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from locb.experiments.comparison.candidates import accepted_parameters
from locb.policies.registry import policy_spec

Grid = dict[str, tuple[float, ...]]  # values of each parameter, in ascending order
ALPHAS = (0.1, 0.3, 1.0)
# The threshold of each policy that clusters users. It influences the regret at least as much as alpha.
THRESHOLDS: dict[str, tuple[str, tuple[float, ...]]] = {
    "locb": ("gamma", (0.1, 0.2, 0.4)),
    "club": ("alpha2", (0.25, 0.5, 1.0, 2.0)),
    "sclub": ("alpha_theta", (0.375, 0.75, 1.5, 3.0)),
    "mixed-effects": ("sigma", (0.125, 0.25, 0.5, 1.0)),
    "dynucb": ("n_clusters", (2, 4, 8, 16)),
    "cab": ("gamma", (0.1, 0.2, 0.4, 0.8)),
    "rclumb": ("alpha2", (0.25, 0.5, 1.0, 2.0)),
}
MAX_EXTENSIONS = 2  # largest number of values that are added beyond one end of a grid


class Edge(NamedTuple):
    """Parameter whose best value is the lowest or the highest value of its grid."""

    parameter: str
    value: float
    at_start: bool

    def __str__(self) -> str:
        return f"{self.parameter} {self.value:g} ({'lowest' if self.at_start else 'highest'})"


def initial_grid(policy: str, alphas: Sequence[float]) -> Grid:
    """Return the grid with which a policy starts: alpha and its threshold, as far as the policy has them.

    The grid of a policy without these parameters is empty: the policy runs once, with its defaults.

    Examples
    --------
    >>> initial_grid("linucb-one", [1.0, 0.1])
    {'alpha': (0.1, 1.0)}
    """
    grid: Grid = {}
    if accepted_parameters(policy_spec(policy, parameter="policies").factory, {"alpha": 1.0}):
        grid["alpha"] = tuple(sorted(float(alpha) for alpha in alphas))
    if policy in THRESHOLDS:
        name, values = THRESHOLDS[policy]
        grid[name] = values
    return grid


def settings(grid: Grid) -> list[dict[str, float]]:
    """Return all combinations of the values of a grid; one empty combination for an empty grid.

    Examples
    --------
    >>> settings({"alpha": (0.1, 1.0), "gamma": (0.2,)})
    [{'alpha': 0.1, 'gamma': 0.2}, {'alpha': 1.0, 'gamma': 0.2}]
    """
    return [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]


def find_edges(grid: Grid, best: Mapping[str, Any]) -> list[Edge]:
    """Return the parameters whose best value is at an end of the grid.

    A parameter with a single value has no edge. The smallest allowed value (0, or 1 for integers) is not an edge.

    Examples
    --------
    >>> [str(edge) for edge in find_edges({"alpha": (0.1, 0.3), "gamma": (0.2,)}, {"alpha": 0.1, "gamma": 0.2})]
    ['alpha 0.1 (lowest)']
    """
    return [
        Edge(name, best[name], best[name] == values[0])
        for name, values in grid.items()
        if len(values) > 1 and best[name] in (values[0], values[-1]) and best[name] > isinstance(best[name], int)
    ]


def extend(grid: Grid, edges: Sequence[Edge]) -> Grid:
    """Return the grid with one more value beyond each edge, at the ratio of the two values at that end.

    The new value of a grid of integers is an integer.

    Examples
    --------
    >>> extend({"alpha": (0.25, 0.5, 1.0)}, [Edge("alpha", 0.25, True)])
    {'alpha': (0.125, 0.25, 0.5, 1.0)}
    >>> extend({"n_clusters": (2, 4)}, [Edge("n_clusters", 4, False)])
    {'n_clusters': (2, 4, 8)}
    """
    extended = dict(grid)
    for edge in edges:
        values = grid[edge.parameter]
        if edge.at_start:
            extended[edge.parameter] = (_round(values[0] * values[0] / values[1], values[0]), *values)
        else:
            ratio = values[-1] / values[-2] if values[-2] > 0.0 else 2.0
            extended[edge.parameter] = (*values, _round(values[-1] * ratio, values[0]))
    return extended


def _round(value: float, like: float) -> float:
    """Return a value with three digits, as an integer if ``like`` is an integer."""
    return max(1, round(value)) if isinstance(like, int) else float(f"{value:.3g}")
