"""Agreement of clusters: values of scikit-learn and SciPy, and the effect of further clusters."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from locb.evaluation.cluster_agreement import _assign, cluster_agreement
from locb.evaluation.clusters import group_by_label, match_clusters


@pytest.mark.parametrize("seed", range(20))
def test_partitions_have_the_values_of_scikit_learn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels, truth = rng.integers(0, rng.integers(1, 8), 40), rng.integers(0, rng.integers(1, 8), 40)
    score = cluster_agreement(group_by_label(labels), group_by_label(truth))
    assert score.ari == pytest.approx(adjusted_rand_score(truth, labels), abs=1e-12)
    assert score.nmi == pytest.approx(normalized_mutual_info_score(truth, labels), abs=1e-12)
    assert score.clusters == len(np.unique(labels))


@pytest.mark.parametrize("seed", range(20))
def test_assignment_is_optimal(seed: int) -> None:
    rng = np.random.default_rng(seed)
    costs = rng.normal(size=(rng.integers(1, 7), rng.integers(7, 12)))
    rows, columns = linear_sum_assignment(costs)
    assigned = _assign(costs)
    assert len(set(assigned.tolist())) == len(costs)
    assert costs[np.arange(len(costs)), assigned].sum() == pytest.approx(costs[rows, columns].sum())


def test_further_clusters_reduce_the_one_to_one_f1_but_not_the_f1_of_the_paper() -> None:
    truth = [[0, 1, 2], [3, 4, 5]]
    exact = cluster_agreement(truth, truth)
    assert (exact.one_to_one_f1, exact.ari, exact.nmi) == (1.0, 1.0, 1.0)
    more = [*truth, [0, 4], [1, 5]]
    assert match_clusters(more, truth).f1 == 1.0
    assert cluster_agreement(more, truth).one_to_one_f1 == pytest.approx(0.5)
    assert cluster_agreement([*truth, [0, 1, 2]], truth) == exact  # equal clusters count once


def test_one_cluster_for_all_and_no_cluster() -> None:
    truth = [[0, 1, 2], [3, 4, 5]]
    together = cluster_agreement([range(6)], truth)
    assert together.ari == pytest.approx(0.0)
    assert together.one_to_one_f1 == pytest.approx((2 * 3 / 9) / 2)
    nothing = cluster_agreement([], truth)
    assert (nothing.one_to_one_f1, nothing.clusters) == (0.0, 0)
    assert nothing.ari == pytest.approx(0.0)


def test_users_outside_the_true_clusters_do_not_count_in_the_partitions() -> None:
    assert cluster_agreement([[0, 1, 9], [2, 3]], [[0, 1], [2, 3]]).ari == 1.0
