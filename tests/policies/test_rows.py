"""Users who come one by one: rows are made for twice as many at a time, and what is known of groups stays exact."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import locb
from locb.kernels.common.bit_sets import unpack_bits
from policies.helpers import DIM, KINDS, N, make, world
from policies.test_large import busy_rounds, check_sets, components, gap_to_exact, lowest_users

JOINED = 150


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_made_seldom(kind: str) -> None:
    policy = make(kind)
    name = policy._row_array
    made = [getattr(policy._state, name)]  # kept, so that no two are at the same address
    for count in range(JOINED):
        policy.add_users(1)
        policy.update(N + count, np.full(DIM, 0.3), 1.0)
        rows = getattr(policy._state, name)
        if rows is not made[-1]:
            made.append(rows)
    assert policy.n_users == N + JOINED
    assert policy.served[N:].tolist() == [1] * JOINED
    assert len(made) <= 1 + np.ceil(np.log2((N + JOINED) / N))
    assert policy.theta.shape == (N + JOINED, DIM)


@pytest.mark.parametrize("shared", [False, True])
def test_linucb_is_what_it_would_be_with_all_from_the_start(shared: bool) -> None:
    grown, int_params = (locb.LinUCB(n_users=n, dim=DIM, shared=shared) for n in (1, N))
    for _ in range(N - 1):
        grown.add_users(1)
    for policy in (grown, int_params):
        policy.play(world(200))
    for name, array in int_params._arrays().items():
        assert np.array_equal(grown._arrays()[name], array), name


@pytest.mark.parametrize("graph", ["complete", "erdos-renyi"])
@pytest.mark.parametrize("at_once", [1, 7])
def test_components_are_those_of_the_graph(graph: str, at_once: int) -> None:
    policy = locb.CLUB(n_users=40, dim=DIM, alpha2=0.3, graph=graph)
    fewer = 0
    for block in range(30):
        policy.play(busy_rounds(policy.n_users, 200 * at_once, seed=block))
        before = len(policy.clusters())
        policy.add_users(at_once)
        n, after = policy.n_users, len(policy.clusters())
        fewer += after < before
        if graph == "complete":
            edges = np.argwhere(np.triu(unpack_bits(policy._state.neighbour_bits, n)[:n]))
            assert after == 1
        else:
            edges = policy._edges()
            assert np.array_equal(edges, edges[np.lexsort(edges.T)])
        check_components(policy, edges)
    assert fewer > 5  # many have become one


def check_components(policy: Any, edges: Any) -> None:
    state = policy._state
    assert lowest_users(policy) == components(edges, policy.n_users)
    assert gap_to_exact(policy, state.component) < 1e-8
    for cluster in policy.clusters():
        name = state.component[cluster.members[0]]
        assert state.sizes[name] == len(cluster)
        assert state.cluster_served[name] == policy.served[cluster.members].sum()
    assert sorted(set(state.component[: policy.n_users].tolist())) == list(range(len(policy.clusters())))


def test_users_with_no_edge_are_components_of_their_own() -> None:
    policy = locb.CLUB(n_users=1, dim=DIM, graph="erdos-renyi")  # the chance of an edge is 3 log 2 / 2 and more
    for _ in range(40):
        policy.add_users(3)
        check_components(policy, policy._edges())
    assert len(policy._edges()) > 100


@pytest.mark.parametrize("at_once", [1, 7])
def test_sets_are_what_their_users_make_them(at_once: int) -> None:
    policy = locb.SCLUB(n_users=40, dim=DIM, alpha_theta=0.2, alpha_p=0.3)
    for block in range(30):
        policy.play(busy_rounds(policy.n_users, 60, seed=block))
        policy.add_users(at_once)
        check_sets(policy)
        assert policy.cluster_sizes().sum() == policy.n_users


@pytest.mark.interpreted
@pytest.mark.parametrize("kind", KINDS)
def test_room_leaves_no_trace(kind: str, tmp_path: Path) -> None:
    """A loaded policy has none, and yet goes on to the same file."""
    policy = make(kind, 0)
    for _ in range(9):
        policy.add_users(1)
    policy.play(world(200))
    policy.save(tmp_path / "before")
    loaded = locb.load(tmp_path / "before")
    assert len(loaded.served.base) < len(policy.served.base)
    for each, name in ((policy, "saved"), (loaded, "loaded")):
        each.add_users(1)
        each.play(busy_rounds(each.n_users, 200, seed=1))
        each.add_users(5)
        each.play(busy_rounds(each.n_users, 200, seed=2))
        each.save(tmp_path / name)
    assert (tmp_path / "saved").read_bytes() == (tmp_path / "loaded").read_bytes()


def test_sums_are_added_up_anew_in_the_same_rounds_with_room_and_without(tmp_path: Path) -> None:
    policy = locb.ELOC(n_users=300, dim=DIM, n_seeds=5)
    policy.add_users(10)
    policy.save(tmp_path / "before")
    for each, name in ((policy, "saved"), (locb.load(tmp_path / "before"), "loaded")):
        each.play(busy_rounds(310, 12_000, seed=1))
        each.save(tmp_path / name)
    assert (tmp_path / "saved").read_bytes() == (tmp_path / "loaded").read_bytes()
