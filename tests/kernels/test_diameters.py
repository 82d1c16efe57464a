"""Diameters: the largest distance between two estimates plus their radii, compared with the definition."""

import math

import numpy as np
import pytest

from locb.kernels.common import diameters
from locb.kernels.common.diameters import diameter, diameter_bound


def over_all_pairs(theta: np.ndarray, radius: np.ndarray) -> float:
    """Return the diameter by its definition."""
    largest = 0.0
    for i in range(len(theta)):
        for j in range(i):
            largest = max(largest, math.dist(theta[i], theta[j]) + radius[i] + radius[j])
    return largest


def make_set(kind: str, n: int, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Return estimates and radii: random, or sets for which the bounds of pairs exclude few pairs."""
    rng = np.random.default_rng(n + dim)
    theta, radius = rng.standard_normal((n, dim)), rng.random(n)
    if kind == "sphere":
        theta /= np.linalg.norm(theta, axis=1, keepdims=True)
        radius[:] = 0.25
    elif kind == "equal":
        theta[:] = theta[0]
    elif kind == "zero":
        theta[:], radius[:] = 0.0, 0.0
    elif kind == "large radius":
        radius[n // 2] = 100.0
    elif kind == "two groups":
        theta[: n // 2] += 50.0
    return theta, radius


@pytest.mark.parametrize("n", [0, 1, 2, 3, 300])
@pytest.mark.parametrize("kind", ["random", "sphere", "equal", "zero", "large radius", "two groups"])
def test_maximum_over_all_pairs(kind: str, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for dim in (1, 2, 7) if n else ():
        theta, radius = make_set(kind, n, dim)
        expected = over_all_pairs(theta, radius)
        for limit in (n, min(n, 1)):  # without and with compiled code
            monkeypatch.setattr(diameters, "MAX_PLAIN", limit)
            assert diameter(theta, radius) == pytest.approx(expected, rel=1e-12)
        assert diameter_bound(theta, radius) >= expected * (1.0 - 1e-12)
    assert diameter(np.empty((0, 2)), np.empty(0)) == 0.0


def test_infinite_radius(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diameters, "MAX_PLAIN", 1)
    theta, radius = make_set("random", 20, 3)
    radius[4] = math.inf
    assert diameter(theta, radius) == math.inf
