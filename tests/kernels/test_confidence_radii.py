"""Confidence radii of the kernels, compared with the formulas of the reference implementation in ``tests/naive.py``."""

import math
from itertools import pairwise

import numpy as np
import pytest

import naive
from locb.kernels import confidence_radii

pytestmark = pytest.mark.interpreted


@pytest.mark.parametrize("name", ["regret", "clustering", "theory", "ellipsoid"])
@pytest.mark.parametrize("m", [0, 1, 7, 5000])
def test_scale_times_width_equals_the_formula(name: str, m: int) -> None:
    n, d, sigma, delta, t, smallest = 50, 6, 0.7, 0.1, 10_000, 0.3
    rng = np.random.default_rng(m)
    xs = rng.standard_normal((min(m, 100), d))
    A = np.eye(d) + xs.T @ xs  # noqa: N806 - the paper's letter
    kind = confidence_radii.RADII[name]
    radius_width = confidence_radii.radius_width(
        kind, m, n, d, sigma, delta, smallest, np.linalg.slogdet(A)[1], np.linalg.eigvalsh(np.linalg.inv(A))[-1]
    )
    found = confidence_radii.radius_scale(kind, t, n, d, sigma, delta) * radius_width
    assert found == pytest.approx(naive.radius(name, m, A, t, n, d, sigma, delta, smallest), rel=1e-9)


def test_radius_is_infinite_if_its_formula_is_not_defined() -> None:
    assert confidence_radii.radius_scale(confidence_radii.CLUSTERING, 0, 10, 2, 0.5, 0.1) == math.inf
    assert confidence_radii.radius_scale(confidence_radii.THEORY, 0, 10, 2, 0.5, 0.1) == math.inf
    assert confidence_radii.radius_scale(confidence_radii.REGRET, 0, 10, 2, 0.5, 0.1) == 1.0


def test_shrinkage_starts_at_one_and_decreases() -> None:
    values = [confidence_radii.shrinkage(m) for m in range(200)]
    assert values[0] == 1.0
    assert all(a > b for a, b in pairwise(values))
    assert confidence_radii.shrinkage(120) == pytest.approx(math.sqrt((1 + math.log(121)) / 121))
