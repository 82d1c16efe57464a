"""Checks of the weights of an evaluation: problems that forbid a verdict, and warnings, with their thresholds."""

import math

from locb.logs.bootstrap import Interval
from locb.logs.results import Weights

MIN_EFFECTIVE = 30  # effective decisions below which there is no verdict
MAX_SHARE = 0.1  # share of one decision in the sum of weights above which there is a warning
MEAN_WEIGHT_MARGIN = 1.7  # maximum distance of the mean weight from 1, in half widths of its 95% interval
MEAN_WEIGHT_SLACK = 0.01  # distance of the mean weight from 1, or share of unsupported choices, that allows a verdict


def check_weights(weights: Weights) -> tuple[list[str], list[str]]:
    """Return the problems of weights that forbid a verdict, and the warnings."""
    problems, warnings = [], []
    if weights.effective < MIN_EFFECTIVE:
        problems.append(
            f"the log has only {weights.effective:.0f} effective decisions for the policy, and at least "
            f"{MIN_EFFECTIVE} are required"
        )
    if weights.unsupported > MEAN_WEIGHT_SLACK:
        share = f"{weights.unsupported:.1%} of the choices of the policy"
        problems.append(f"{share} are arms that are never chosen in the log")
    mean = weights.mean
    if _differs_from_one(mean):
        problems.append(
            f"the mean weight is {mean.value:.3f} instead of 1: the propensities are wrong, or some choices of the "
            "policy never occur in the log"
        )
    if weights.largest > MAX_SHARE * weights.total:
        warnings.append(
            f"the largest weight, {weights.largest:.3g}, is more than {MAX_SHARE:.0%} of the sum of the weights, so "
            "few decisions determine the estimate"
        )
    return problems, warnings


def _differs_from_one(mean: Interval) -> bool:
    if math.isnan(mean.low):
        return abs(mean.value - 1.0) > MEAN_WEIGHT_SLACK and not math.isnan(mean.value)
    low, high = mean.value - mean.low, mean.high - mean.value
    distance = 1.0 - mean.value
    margin = MEAN_WEIGHT_MARGIN * (high if distance > 0 else low)
    return abs(distance) > max(margin, MEAN_WEIGHT_SLACK)
