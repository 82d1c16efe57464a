"""Clusters: scores against true clusters."""

import numpy as np
import pytest

import locb


def test_each_true_cluster_is_scored_by_the_best_found_cluster() -> None:
    score = locb.match_clusters([[0, 1, 2, 3], [0, 1], [7]], [[0, 1, 2], [3, 4]])
    # [0,1,2]: the first found cluster has F1 6/7 (precision 3/4), the second 4/5.
    # [3,4]: only the first found cluster has a positive F1, 2/6.
    assert score.f1 == pytest.approx((6 / 7 + 2 / 6) / 2)
    assert score.precision == pytest.approx((3 / 4 + 1 / 4) / 2)
    assert score.recall == pytest.approx((1 + 1 / 2) / 2)


def test_perfect_and_zero_scores() -> None:
    truth = [[0, 2], [1, 3]]
    assert locb.match_clusters([locb.Cluster(0, np.array([0, 2])), [3, 1]], truth) == (1.0, 1.0, 1.0)
    assert locb.match_clusters([], truth) == (0.0, 0.0, 0.0)
    assert locb.match_clusters([[9], []], truth) == (0.0, 0.0, 0.0)


def test_scores_equal_a_brute_force_search() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        found, truth = ([rng.choice(30, rng.integers(1, 12), replace=False) for _ in range(6)] for _ in range(2))
        best = np.zeros((6, 3))
        for row, true in enumerate(truth):
            for candidate in found:
                common = len(set(true.tolist()) & set(candidate.tolist()))
                f1 = 2.0 * common / (len(true) + len(candidate))
                if f1 > best[row, 0]:
                    best[row] = f1, common / len(candidate), common / len(true)
        assert locb.match_clusters(found, truth) == tuple(best.mean(axis=0))


def test_invalid_input_is_rejected() -> None:
    with pytest.raises(ValueError, match="truth must contain at least one"):
        locb.match_clusters([[1]], [])
    with pytest.raises(ValueError, match="is empty: every true cluster must contain at least one user"):
        locb.match_clusters([[1]], [[0], []])
    with pytest.raises(ValueError, match=r"cluster must be a Cluster or a list of integers \(users\)"):
        locb.match_clusters([["a"]], [[0]])


def test_cluster_supports_len_and_in() -> None:
    cluster = locb.Cluster(seed=4, members=np.array([1, 4]), returned_at=9)
    assert len(cluster) == 2
    assert 4 in cluster
    assert 2 not in cluster
