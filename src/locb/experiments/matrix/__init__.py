"""Scenario matrix: the regret of every policy in every scenario, relative to the best baseline of the scenario."""

from locb.experiments.matrix.grids import ALPHAS
from locb.experiments.matrix.matrix_plan import MatrixPlan, plan_matrix

__all__ = ["ALPHAS", "MatrixPlan", "plan_matrix"]
