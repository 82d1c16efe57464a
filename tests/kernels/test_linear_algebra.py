"""Linear algebra of the kernels, compared with NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiled_calls import call_compiled
from locb.kernels.common import arm_scoring, eigenvalues, linear_algebra

pytestmark = pytest.mark.interpreted


def sample_observations(seed: int, d: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((m, d)) * rng.uniform(0.1, 2.0), rng.standard_normal(m)


def pack_symmetric(matrix: np.ndarray) -> np.ndarray:
    return matrix[np.triu_indices(len(matrix))]


@given(seed=st.integers(0, 1000), d=st.integers(1, 12), m=st.integers(0, 40))
@settings(max_examples=40, deadline=None)
def test_rank_one_updates_equal_the_solution_of_all_observations(seed: int, d: int, m: int) -> None:
    xs, rs = sample_observations(seed, d, m)
    columns = d + linear_algebra.packed_size(d)
    row = np.concatenate([np.zeros(d), linear_algebra.packed_identity(d)])[None, :].copy()
    sums = np.zeros((1, columns))
    det_ratio = 1.0
    for x, r in zip(xs, rs, strict=True):
        det_ratio *= call_compiled(linear_algebra.rank_one_update)(row, 0, x, r, np.empty(columns))
        call_compiled(linear_algebra.add_observation)(sums, 0, x, r)
    A = np.eye(d) + xs.T @ xs  # noqa: N806 - the paper's letter
    inverse = np.linalg.inv(A)
    exact = np.concatenate([inverse @ (xs.T @ rs), pack_symmetric(inverse)])
    assert row[0] == pytest.approx(exact, abs=1e-10)
    assert det_ratio == pytest.approx(np.linalg.det(A), rel=1e-9)
    solved = np.empty((1, columns))
    call_compiled(linear_algebra.solve_ridge)(sums, 0, solved, 0, np.empty((2 * d, d)))
    assert solved[0] == pytest.approx(exact, abs=1e-10)


@given(seed=st.integers(0, 1000), d=st.integers(1, 12), m=st.integers(0, 40))
@settings(max_examples=40, deadline=None)
def test_largest_eigenvalue(seed: int, d: int, m: int) -> None:
    xs, _ = sample_observations(seed, d, m)
    inverse = np.linalg.inv(np.eye(d) + xs.T @ xs)
    row = np.concatenate([np.zeros(d), pack_symmetric(inverse)])[None, :].copy()
    found = call_compiled(eigenvalues.largest_eigenvalue)(row, 0, np.empty((d + 3, d)))
    assert found == pytest.approx(np.linalg.eigvalsh(inverse)[-1], rel=1e-12)


@pytest.mark.parametrize("tiny", [1e-200, 1e-158, 1e-120, 1e-90])
def test_largest_eigenvalue_with_tiny_entries(tiny: float) -> None:
    x = np.array([3.0, tiny, 0.0])
    inverse = np.linalg.inv(np.eye(3) + np.outer(x, x))
    inverse[0, 1] = inverse[1, 0] = -tiny
    row = np.concatenate([np.zeros(3), pack_symmetric(inverse)])[None, :].copy()
    assert call_compiled(eigenvalues.largest_eigenvalue)(row, 0, np.empty((6, 3))) == pytest.approx(1.0)


def test_expanded_contexts_give_mean_and_variance() -> None:
    rng = np.random.default_rng(5)
    d, k = 4, 3
    contexts, theta = rng.standard_normal((k, d)), rng.standard_normal(d)
    matrix = rng.standard_normal((d, d))
    matrix = matrix @ matrix.T
    arms = np.empty((k, d + linear_algebra.packed_size(d)))
    call_compiled(arm_scoring.expand_contexts)(contexts, arms)
    row = np.concatenate([theta, pack_symmetric(matrix)])[None, :].copy()
    for a, x in enumerate(contexts):
        assert call_compiled(arm_scoring.dot)(arms, a, row, 0, 0, d) == pytest.approx(theta @ x)
        assert call_compiled(arm_scoring.dot)(arms, a, row, 0, d, arms.shape[1]) == pytest.approx(x @ matrix @ x)
    assert linear_algebra.unpack_symmetric(row[0, d:], d) == pytest.approx(matrix)


def test_ties_are_broken_by_the_first_arm_within_the_margin() -> None:
    generator = np.array([88172645463325252], np.uint64)
    scores = np.array([0.0, 1.0, 1.0 - 0.9e-9, 1.0 - 2e-9])
    assert call_compiled(arm_scoring.pick_arm)(scores, arm_scoring.TIE_FIRST, generator) == 1
    assert generator[0] == 88172645463325252
    # Of arms within the tie margin of the highest score, the first is chosen, even if its score is slightly lower.
    assert (
        call_compiled(arm_scoring.pick_arm)(np.array([0.0, 1.0 - 0.9e-9, 1.0]), arm_scoring.TIE_FIRST, generator) == 1
    )


def test_random_ties_choose_every_tied_arm_equally_often() -> None:
    generator = np.array([88172645463325252], np.uint64)
    scores = np.array([0.5, 0.1, 0.5, 0.5])
    counts = np.bincount(
        [call_compiled(arm_scoring.pick_arm)(scores, arm_scoring.TIE_RANDOM, generator) for _ in range(6000)],
        minlength=4,
    )
    assert counts[1] == 0
    assert counts[[0, 2, 3]] == pytest.approx([2000, 2000, 2000], abs=200)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1.1e6])
def test_is_valid_rejects_numbers_out_of_range(bad: float) -> None:
    assert call_compiled(arm_scoring.is_valid)(np.array([0.0, -1e6]))
    assert not call_compiled(arm_scoring.is_valid)(np.array([0.0, bad]))


@pytest.mark.parametrize("d", [1, 2, 6, 60])
def test_solve(d: int) -> None:
    """Solutions equal those of NumPy, also where the product of all pivots would overflow."""
    rng = np.random.default_rng(d)
    for scale in (1e-9, 1.0, 1e9):
        root = rng.standard_normal((d, d + 3)) * scale
        matrix, vector = root @ root.T, rng.standard_normal(d)
        rows = np.concatenate([vector, matrix[np.triu_indices(d)]])[None, :].copy()
        answers, workspace = np.empty_like(rows), np.empty((d, 2 * d + 1))
        log_det = call_compiled(linear_algebra.solve)(rows, 0, answers, 0, workspace)
        inverse = np.linalg.inv(matrix)
        assert log_det == pytest.approx(np.linalg.slogdet(matrix)[1], rel=1e-9, abs=1e-9)
        assert answers[0, :d] == pytest.approx(inverse @ vector, rel=1e-6, abs=1e-9 * np.abs(inverse).max())
        assert linear_algebra.unpack_symmetric(answers[0, d:], d) == pytest.approx(
            inverse, rel=1e-6, abs=1e-9 * np.abs(inverse).max()
        )
