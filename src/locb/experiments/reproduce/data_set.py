"""Data sets of a reproduction, and the gammas at which their users form groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from locb.environments import Interactions
from locb.experiments import paper_values as paper
from locb.experiments.environment_factory import data_digest, ground_truth_note, make_environment


@dataclass(frozen=True)
class DataSet:
    """Data set of a reproduction.

    A true group at a gamma is a true cluster of two or more users, see ``Interactions.true_clusters``.
    """

    name: str  # a name in ``paper.NOISES``, or "movielens", "yelp", "yahoo" or "table"
    environment: dict[str, Any]  # settings of make_environment
    # Smallest gamma at which half of the users are in true groups; None if 0.2, or no gamma at all, is large enough.
    scaled: float | None
    note: str | None  # text for the report if a gamma of 0.2 is too small
    digest: str  # digest of the users' preferences (``data_digest``), which detects changed data

    @property
    def limitation(self) -> str:
        """Reason why claims about F1 at the paper's gamma are not counted; empty if F1 is informative."""
        if self.note is None:
            return ""
        fact = self.note.partition(": ")[2].partition(", so F1")[0].replace("users", f"users of {self.label}", 1)
        return f"{fact}. F1 is therefore not informative, and claims about the accuracy at this gamma are not counted."

    @property
    def label(self) -> str:
        """Name for display, with the rewards of the synthetic environment."""
        return paper.DATA.get(self.name, self.name)

    @property
    def family(self) -> str:
        """Name for display without the rewards. All synthetic data sets have the same."""
        return self.label.partition(", ")[0]

    @property
    def rewards(self) -> str:
        """Rewards of a synthetic data set, as text; empty for real data."""
        return self.label.partition(", ")[2]

    @property
    def paper_name(self) -> str:
        """Name of the data set in ``paper_values``. The paper has one synthetic data set with unstated noise."""
        return "synthetic" if self.name in paper.NOISES else self.name

    @property
    def gammas(self) -> list[float]:
        """Gammas at which the methods run: the paper's gamma, and the scaled gamma if there is one."""
        return [paper.GAMMA] if self.scaled is None else [paper.GAMMA, self.scaled]

    def truth_gammas(self, gamma: float) -> list[float]:
        """Return the gammas of the true clusters with which the clusters of runs at ``gamma`` are compared."""
        return [other for other in self.gammas if other >= gamma] if gamma in self.gammas else [gamma]


def open_data_set(name: str, environment: dict[str, Any], seed: int) -> DataSet:
    """Load a data set and find the smallest gamma at which half of its users are in true groups.

    Parameters
    ----------
    name : str
        Name of the data set.
    environment : dict
        Settings of :func:`~locb.experiments.environment_factory.make_environment`.
    seed : int
        Random seed of a synthetic environment.
    """
    env: Any = make_environment(environment, seed)
    digest = data_digest(env)
    note = ground_truth_note(env, paper.GAMMA)
    if note is None or not isinstance(env, Interactions):
        return DataSet(name, environment, None, None, digest)
    scaled = env.scaled_gamma()
    label = f"{paper.DATA.get(name, name)}: {note}"
    return DataSet(name, environment, None if scaled == float("inf") else scaled, label, digest)


def file_suffix(gamma: float, truth_gamma: float) -> str:
    """Return the end of a file name: the gamma of the runs if it is not 0.2, otherwise the gamma of the true clusters.

    The suffix is empty if both gammas are 0.2, the gamma of the paper.
    """
    if gamma != paper.GAMMA:
        return f"-gamma-{gamma:g}"
    return "" if truth_gamma == paper.GAMMA else f"-truth-{truth_gamma:g}"


def scope_note(gamma: float, truth_gamma: float) -> str:
    """Return a sentence on the gamma of the paper's numbers if a table has another gamma; otherwise empty."""
    if gamma == truth_gamma == paper.GAMMA:
        return ""
    return f" The numbers of the paper are for LOCB and true clusters at gamma {paper.GAMMA:g}."


def setting_label(data: DataSet, gamma: float, truth_gamma: float) -> str:
    """Return the name of the data set and, if the data set has a scaled gamma, the gamma of the runs.

    The gamma of the true clusters follows if it differs from the gamma of the runs.
    """
    if data.scaled is None:
        return data.label
    truth = "" if gamma == truth_gamma else f", true clusters at gamma {truth_gamma:g}"
    return f"{data.label}, gamma {gamma:g}{truth}"
