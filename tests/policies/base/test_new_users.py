"""``add_users``: the number of rows doubles when all rows are used, and clusters stay exact."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import locb
from locb.kernels.common.bit_sets import unpack_bits
from policies.helpers import DIM, KINDS, N, make, make_rounds
from policies.test_club_and_sclub import check_sclub_clusters, components, lowest_users, max_error, two_group_rounds

pytestmark = pytest.mark.filterwarnings("ignore::locb.RewardScaleWarning")  # the scale of the rewards is arbitrary

N_ADDED = 150


@pytest.mark.parametrize("kind", KINDS)
def test_rows_double_when_full(kind: str) -> None:
    policy = make(kind)
    name = policy._row_array
    allocated = [
        getattr(policy._state, name)
    ]  # references keep old arrays alive, so that no two arrays have the same address
    for count in range(N_ADDED):
        policy.add_users(1)
        policy.update(N + count, np.full(DIM, 0.3), 1.0)
        rows = getattr(policy._state, name)
        if rows is not allocated[-1]:
            allocated.append(rows)
    assert policy.n_users == N + N_ADDED
    assert policy.served[N:].tolist() == [1] * N_ADDED
    assert len(allocated) <= 1 + np.ceil(np.log2((N + N_ADDED) / N))
    assert policy.theta.shape == (N + N_ADDED, DIM)


@pytest.mark.parametrize("shared", [False, True])
def test_linucb_grown_equals_full_size(shared: bool) -> None:
    grown, full = (locb.LinUCB(n_users=n, dim=DIM, shared=shared) for n in (1, N))
    for _ in range(N - 1):
        grown.add_users(1)
    for policy in (grown, full):
        policy.play(make_rounds(200))
    for name, array in full._arrays().items():
        assert np.array_equal(grown._arrays()[name], array), name


@pytest.mark.parametrize("graph", ["complete", "erdos-renyi"])
@pytest.mark.parametrize("at_once", [1, 7])
def test_club_components_after_growth(graph: str, at_once: int) -> None:
    policy = locb.CLUB(n_users=40, dim=DIM, alpha2=0.3, graph=graph)
    merges = 0
    for block in range(30):
        policy.play(two_group_rounds(policy.n_users, 200 * at_once, seed=block))
        before = len(policy.clusters())
        policy.add_users(at_once)
        n, after = policy.n_users, len(policy.clusters())
        merges += after < before
        if graph == "complete":
            edges = np.argwhere(np.triu(unpack_bits(policy._state.neighbour_bits, n)[:n]))
            assert after == 1
        else:
            edges = policy._edges()
            assert np.array_equal(edges, edges[np.lexsort(edges.T)])
        check_components(policy, edges)
    assert merges > 5


def check_components(policy: Any, edges: Any) -> None:
    state = policy._state
    assert lowest_users(policy) == components(edges, policy.n_users)
    assert max_error(policy, state.component) < 1e-8
    for cluster in policy.clusters():
        component = state.component[cluster.members[0]]
        assert state.sizes[component] == len(cluster)
        assert state.cluster_served[component] == policy.served[cluster.members].sum()
    assert sorted(set(state.component[: policy.n_users].tolist())) == list(range(len(policy.clusters())))


def test_club_users_without_edges() -> None:
    policy = locb.CLUB(n_users=1, dim=DIM, graph="erdos-renyi")  # the edge probability is at least 3 log 2 / 2
    for _ in range(40):
        policy.add_users(3)
        check_components(policy, policy._edges())
    assert len(policy._edges()) > 100


@pytest.mark.parametrize("at_once", [1, 7])
def test_sclub_clusters_after_growth(at_once: int) -> None:
    policy = locb.SCLUB(n_users=40, dim=DIM, alpha_theta=0.2, alpha_p=0.3)
    for block in range(30):
        policy.play(two_group_rounds(policy.n_users, 60, seed=block))
        policy.add_users(at_once)
        check_sclub_clusters(policy)
        assert policy.cluster_sizes().sum() == policy.n_users


@pytest.mark.interpreted
@pytest.mark.parametrize("kind", KINDS)
def test_spare_rows_do_not_change_results(kind: str, tmp_path: Path) -> None:
    """A loaded policy has no spare rows. After the same rounds, it saves the same file as the original policy."""
    policy = make(kind, 0)
    for _ in range(9):
        policy.add_users(1)
    policy.play(make_rounds(200))
    policy.save(tmp_path / "before")
    loaded = locb.load(tmp_path / "before")
    assert len(loaded.served.base) < len(policy.served.base)
    for learner, name in ((policy, "saved"), (loaded, "loaded")):
        learner.add_users(1)
        learner.play(two_group_rounds(learner.n_users, 200, seed=1))
        learner.add_users(5)
        learner.play(two_group_rounds(learner.n_users, 200, seed=2))
        learner.save(tmp_path / name)
    assert (tmp_path / "saved").read_bytes() == (tmp_path / "loaded").read_bytes()


def test_spare_rows_do_not_change_the_refresh_schedule(tmp_path: Path) -> None:
    policy = locb.ELOC(n_users=300, dim=DIM, n_seeds=5)
    policy.add_users(10)
    policy.save(tmp_path / "before")
    for learner, name in ((policy, "saved"), (locb.load(tmp_path / "before"), "loaded")):
        learner.play(two_group_rounds(310, 12_000, seed=1))
        learner.save(tmp_path / name)
    assert (tmp_path / "saved").read_bytes() == (tmp_path / "loaded").read_bytes()
